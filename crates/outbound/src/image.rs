//! Fetches an image when a caller gives its URL, and checks by its bytes that it is one.
//!
//! The guard applies as for callbacks: the address is checked when it is given and again when it is connected to, and
//! redirects are not followed. The answer repeats nothing of what was fetched.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::ports::{ImageGuard, UnusableImage};
use domain::{AccountId, ImageUrl};
use http::header::{ACCEPT, CONNECTION, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use permits::{Permit, Permits};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::dial::{DialProblem, DialerOptions};
use crate::exchange::{
    AGENT, BodyEnd, ExchangeError, HttpClient, PendingResponse, Progress, parse_uri,
};
use crate::guard::Guard;

mod cache;
mod gif;
mod jpeg;
mod kind;

mod png;
mod problem;
mod reader;
mod shared_fetch;

use cache::ResultCache;
use problem::Problem;
use shared_fetch::SharedFetches;

pub use kind::{ImageKind, NotAnImage, detect_kind};

/// How long a check may take, from the wait for a permit to the last byte.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// How many images are fetched at once. Bounds the cache, and what hanging hosts can hold.
pub const MAX_FETCHES: usize = 32;

/// How many of them for one account.
const MAX_OF_ACCOUNT: usize = 8;

pub const MAX_IMAGE_BYTES: usize = 1_048_576;

type Verdict = Result<ImageKind, Problem>;

pub struct ImageOptions {
    pub dialer: DialerOptions,
    /// How long a check may take; see [`CHECK_TIMEOUT`].
    pub check_timeout: Duration,
    /// How many fetches run at once; see [`MAX_FETCHES`]. Each account has a share of them and waits when it is used
    /// up.
    pub max_fetches: usize,
}

/// Fetches images and checks whether they can be sent.
///
/// The result for a URL is cached for an hour, because a campaign uses the same image for every message. Concurrent
/// checks of one URL by an account share a fetch. Connection failures are not cached.
pub struct ImageCheck {
    guard: Guard,
    http: HttpClient,
    check_timeout: Duration,
    permits: Arc<Permits<AccountId>>,
    fetches: SharedFetches,
    cache: ResultCache,
}

impl ImageCheck {
    pub fn new(options: ImageOptions) -> Self {
        Self {
            guard: options.dialer.guard.clone(),
            // An image is fetched once, so no connection is kept.
            http: HttpClient::new(options.dialer, 0),
            check_timeout: options.check_timeout,
            permits: Permits::new(options.max_fetches, |_| MAX_OF_ACCOUNT),
            fetches: SharedFetches::default(),
            cache: ResultCache::default(),
        }
    }

    async fn find_kind(&self, asker: AccountId, url: &ImageUrl) -> Verdict {
        let deadline = Instant::now() + self.check_timeout;
        self.guard
            .check_url(url.as_url())
            .map_err(Problem::Forbidden)?;
        if let Some(verdict) = self.cache.find(url) {
            return verdict;
        }
        // A waiting check started later, so the deadline of the fetch comes before its own.
        let shared = self.fetches.join(asker, url);
        let fetch = || self.fetch_and_remember(asker, url, deadline);
        let verdict = shared.wait(fetch).await;
        verdict.clone()
    }

    async fn fetch_and_remember(
        &self,
        asker: AccountId,
        url: &ImageUrl,
        deadline: Instant,
    ) -> Verdict {
        let verdict = self.fetch_with_permit(asker, url, deadline).await;
        if !verdict.as_ref().is_err_and(Problem::is_temporary) {
            self.cache.remember(url, verdict.clone());
        }
        verdict
    }

    /// Fetches once there is a permit. A timeout after waiting for the permit is not blamed on the host.
    async fn fetch_with_permit(
        &self,
        asker: AccountId,
        url: &ImageUrl,
        deadline: Instant,
    ) -> Verdict {
        if let Some(_slot) = self.permits.try_acquire(&[asker]) {
            return self.fetch(url, deadline).await;
        }
        let _permit = self.wait_for_permit(asker, deadline).await?;
        let verdict = self.fetch(url, deadline).await;
        verdict.map_err(|problem| match problem {
            Problem::NoAnswer(_) | Problem::Endless(_) => Problem::Busy,
            other => other,
        })
    }

    async fn wait_for_permit(
        &self,
        asker: AccountId,
        deadline: Instant,
    ) -> Result<Permit<AccountId>, Problem> {
        let slot = timeout_at(deadline, self.permits.acquire(&[asker])).await;
        slot.map_err(|_| Problem::Busy)
    }

    async fn fetch(&self, url: &ImageUrl, deadline: Instant) -> Verdict {
        let asked = timeout_at(deadline, self.ask(url)).await;
        let response = asked.unwrap_or(Err(Problem::NoAnswer(self.check_timeout)))?;
        check_head(&response)?;
        let reading = read_image(response);
        let read = timeout_at(deadline, reading).await;
        let bytes = read.unwrap_or(Err(Problem::Endless(self.check_timeout)))?;
        detect_kind(&bytes).map_err(Problem::Content)
    }

    async fn ask(&self, url: &ImageUrl) -> Result<PendingResponse, Problem> {
        let answer = self
            .http
            .request(request_for(url)?, &mut Progress::default())
            .await;
        answer.map_err(|failed| self.explain(url, failed.error))
    }

    /// A forbidden name is refused with the guard's text, which does not show the address.
    fn explain(&self, url: &ImageUrl, error: ExchangeError) -> Problem {
        if let ExchangeError::Dial(DialProblem::Forbidden(address)) = error
            && let Err(forbidden) = self.guard.check_all(host_of(url), &[address])
        {
            return Problem::Forbidden(forbidden);
        }
        Problem::Exchange(error)
    }
}

fn host_of(url: &ImageUrl) -> String {
    let url = Url::parse(url.as_str()).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn request_for(url: &ImageUrl) -> Result<Request<Full<Bytes>>, Problem> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = parse_uri(url.as_url()).map_err(Problem::Exchange)?;
    let headers = request.headers_mut();
    // Some hosts send other formats to clients without an `Accept` header.
    let kinds = HeaderValue::from_static("image/jpeg, image/png, image/gif");
    headers.insert(ACCEPT, kinds);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(request)
}

/// Checks what the response head shows.
fn check_head(response: &PendingResponse) -> Result<(), Problem> {
    if response.head.status != StatusCode::OK {
        return Err(Problem::Status(response.head.status));
    }
    if response.announced_length() > MAX_IMAGE_BYTES as u64 {
        return Err(Problem::TooLarge);
    }
    Ok(())
}

async fn read_image(response: PendingResponse) -> Result<Vec<u8>, Problem> {
    let announced = usize::try_from(response.announced_length()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(announced.min(MAX_IMAGE_BYTES));
    match response.read_body(MAX_IMAGE_BYTES, &mut bytes).await {
        BodyEnd::Whole => Ok(bytes),
        BodyEnd::Cut => Err(Problem::TooLarge),
        BodyEnd::Broken => Err(Problem::BrokenOff),
    }
}

#[async_trait]
impl ImageGuard for ImageCheck {
    async fn check(&self, asker: AccountId, url: &ImageUrl) -> Result<(), UnusableImage> {
        match self.find_kind(asker, url).await {
            Ok(_) => Ok(()),
            Err(problem) => Err(UnusableImage(problem.to_string())),
        }
    }
}
