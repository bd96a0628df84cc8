//! Who may see a page.
//!
//! The signature of a handler says it: [`Member`], [`Admin`] or [`Operator`]. Everybody else is redirected to the
//! sign-in page, or sees that their role does not include the page.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Redirect, Response};
use domain::Access;
use domain::alert::Alert;
use domain::person::{Role, SignedIn};
use domain::ports::AccountRecord;
use engine::identity::rate::Requester;
use engine::{Accounts, Actor};
use http::request::Parts;
use requests::rate_limit;

use crate::Dashboard;
use crate::kit::alerts;
use crate::kit::browser::{Browser, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::{self, Form};
use crate::kit::page::Frame;
use crate::kit::query::{Query, SAID};
use crate::kit::return_path::ReturnPath;

/// The purpose of the token in every form after signing in.
const FORM: &str = "dashboard";
const NOTICE_PROOF_CHARS: usize = 16;

/// A signed-in browser.
pub(crate) struct Session {
    pub(crate) secret: String,
    pub(crate) signed_in: SignedIn,
    pub(crate) address: IpAddr,
    pub(super) path: String,
    /// This page, for people who sign in again.
    back: ReturnPath,
    alerts: Arc<[Alert]>,
}

impl Session {
    pub(crate) fn frame(&self) -> Frame {
        Frame::signed_in(&self.secret, &self.signed_in, &self.back)
            .with_navigation(&self.signed_in, &self.path, form_token(&self.secret, FORM))
            .with_alerts(alerts::lines(&self.signed_in, &self.alerts))
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.signed_in.role() == Role::Operator
    }

    /// The name for the audit log.
    pub(crate) fn name(&self) -> String {
        let person = self.signed_in.person();
        person.map_or_else(
            || "operator by first link".to_owned(),
            |person| person.email.to_string(),
        )
    }

    /// Redirects to a page that shows a notice about what was done; the page knows it by this word. Its proof keeps
    /// others from linking to notices about things that never happened.
    pub(crate) fn redirect_saying(&self, address: &str, word: &str) -> Response {
        Redirect::to(&notice_address(&self.secret, address, word)).into_response()
    }

    /// The word of the notice that this page is to show.
    pub(crate) fn said<'q>(&self, query: &'q Query) -> Option<&'q str> {
        let (word, proof) = query.get(SAID)?.rsplit_once('.')?;
        (proof == notice_proof(&self.secret, &self.path, word)).then_some(word)
    }

    /// The number of a notice such as `sent-3`.
    pub(crate) fn said_count(&self, query: &Query, word: &str) -> Option<u64> {
        let (said, number) = self.said(query)?.split_once('-')?;
        if said == word {
            number.parse().ok()
        } else {
            None
        }
    }

    pub(crate) fn by(&self) -> Actor {
        Actor::signed_in(&self.signed_in, self.address)
    }
}

/// The address of a page that shows a notice, for the session with this secret.
pub(crate) fn notice_address(secret: &str, address: &str, word: &str) -> String {
    let (path, mark) = match address.split_once('?') {
        Some((path, _)) => (path, '&'),
        None => (address, '?'),
    };
    let proof = notice_proof(secret, path, word);
    format!("{address}{mark}{SAID}={word}.{proof}")
}

/// The start of a hash is enough: it proves nothing else.
fn notice_proof(secret: &str, path: &str, word: &str) -> String {
    let mut proof = form_token(secret, &format!("said {path} {word}"));
    proof.truncate(NOTICE_PROOF_CHARS);
    proof
}

impl FromRequestParts<Arc<Dashboard>> for Session {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let Ok(browser) = Browser::from_request_parts(parts, dashboard).await;
        let path = parts.uri.path().to_owned();
        let back = ReturnPath::new(&path, parts.uri.query().unwrap_or_default());
        let (session, signed_in) = dashboard.signed_in(&browser, &back).await?;
        // A page is of use without them, too.
        let alerts = dashboard.engine.alerts.current().await;
        Ok(Self {
            secret: session.to_owned(),
            signed_in,
            address: browser.address,
            path,
            back,
            alerts: alerts.unwrap_or_default(),
        })
    }
}

/// A person who belongs to an account.
pub(crate) struct Member {
    session: Session,
    pub(crate) account: AccountRecord,
}

impl Member {
    pub(crate) fn frame(&self) -> Frame {
        self.session.frame().with_account(&self.account.name)
    }

    /// Whether the account shows texts to people of this role.
    pub(crate) fn sees_texts(&self) -> bool {
        self.account.rules.texts_for.includes(self.signed_in.role())
    }

    pub(crate) fn access(&self) -> Access {
        Accounts::access_of(&self.account, &self.session.name())
    }
}

impl FromRequestParts<Arc<Dashboard>> for Member {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let session = Session::from_request_parts(parts, dashboard).await?;
        let account = match session.signed_in.account() {
            Some(account) => dashboard.engine.accounts.find_by_id(account).await?,
            None => None,
        };
        match account {
            Some(account) => {
                rate_limit::count(
                    &dashboard.engine.gate,
                    &parts.extensions,
                    account.id,
                    Requester::People,
                    account.rules.requests_per_second,
                )?;
                Ok(Self { session, account })
            }
            // Operators without an account start with the list of accounts.
            None if session.is_operator() && session.path == "/dashboard" => {
                let accounts = Redirect::to("/dashboard/operator/accounts");
                Err(Failure::Elsewhere(accounts))
            }
            None => Err(Failure::NoAccount(Box::new(session.frame()))),
        }
    }
}

/// A person who manages their account.
pub(crate) struct Admin(Member);

impl FromRequestParts<Arc<Dashboard>> for Admin {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let member = Member::from_request_parts(parts, dashboard).await?;
        match member.signed_in.role() {
            Role::Operator | Role::Admin => Ok(Self(member)),
            Role::Member => Err(Failure::NotYours(Box::new(member.frame()))),
        }
    }
}

/// A person who runs the service.
pub(crate) struct Operator(Session);

impl FromRequestParts<Arc<Dashboard>> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Failure> {
        let session = Session::from_request_parts(parts, dashboard).await?;
        match session.signed_in.role() {
            Role::Operator => Ok(Self(session)),
            Role::Admin | Role::Member => Err(Failure::NotYours(Box::new(session.frame()))),
        }
    }
}

impl Deref for Member {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Deref for Admin {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.0
    }
}

impl Deref for Operator {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

/// A form of at most `MAX_BYTES` that one of our own pages sent. It is the last extractor, so that a form is read only
/// if the person may send it.
pub(crate) struct Posted<const MAX_BYTES: usize = { form::MAX_BYTES_WITHIN }>(pub(crate) Form);

impl<const MAX_BYTES: usize> FromRequest<Arc<Dashboard>> for Posted<MAX_BYTES> {
    type Rejection = Failure;

    async fn from_request(request: Request, dashboard: &Arc<Dashboard>) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let Ok(browser) = Browser::from_request_parts(&mut parts, dashboard).await;
        let request = Request::from_parts(parts, body);
        let form = Form::read(request, MAX_BYTES).await?;
        if browser.session.is_some() && browser.sent(&form, FORM, browser.session.as_deref()) {
            Ok(Self(form))
        } else {
            Err(Failure::NotFromHere)
        }
    }
}
