//! Reports, and texts from handsets, that carriers send by HTTP.
//!
//! This is an interface between services, so it is not in the API document. It needs no token: the end of the address
//! proves that this service created it for one message, or for the texts of one carrier. So the address is a secret and
//! must never be logged.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use domain::ports::{CarrierPost, CarrierReports, ReportResult};
use http::{HeaderMap, Method, StatusCode};
use requests::body::read_within;
use requests::{Problem, wrong_method};

const MAX_REPORT_BYTES: usize = 64 * 1024;
/// A binary text of 255 parts in hexadecimal digits, and the other fields.
const MAX_TEXT_BYTES: usize = 128 * 1024;
const REPORT_TIME: Duration = Duration::from_secs(10);
const AGAIN_AFTER_S: u32 = 5;

/// `POST /carriers/{name}/reports/{message}/{proof}` and `POST /carriers/{name}/inbound/{proof}`.
pub fn router(reports: Arc<dyn CarrierReports>) -> Router {
    Router::new()
        .route("/carriers/{name}/reports/{message}/{proof}", post(take))
        .route("/carriers/{name}/inbound/{proof}", post(take_text))
        .with_state(reports)
        .method_not_allowed_fallback(not_a_report)
}

type Address = (String, String, String);

/// The contract requires `OK` for a received report.
async fn take(
    State(reports): State<Arc<dyn CarrierReports>>,
    address: Result<Path<Address>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let body = read_within(request, MAX_REPORT_BYTES, REPORT_TIME).await?;
    let Ok(Path((carrier, message, proof))) = address else {
        return Err(unproven());
    };
    let Ok(message) = message.parse() else {
        return Err(unproven());
    };
    let post = CarrierPost {
        headers: &readable(&headers),
        body: &body,
    };
    answer(reports.take(&carrier, message, &proof, post).await)
}

/// A text from a handset.
async fn take_text(
    State(reports): State<Arc<dyn CarrierReports>>,
    address: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let body = read_within(request, MAX_TEXT_BYTES, REPORT_TIME).await?;
    let Ok(Path((carrier, proof))) = address else {
        return Err(unproven());
    };
    let post = CarrierPost {
        headers: &readable(&headers),
        body: &body,
    };
    answer(reports.take_text(&carrier, &proof, post).await)
}

/// The headers that are text.
fn readable(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let readable = headers
        .iter()
        .map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    readable.flatten().collect()
}

fn answer(result: ReportResult) -> Result<Response, Problem> {
    match result {
        ReportResult::Yes => Ok("OK".into_response()),
        ReportResult::TextStored => Ok(StatusCode::NO_CONTENT.into_response()),
        ReportResult::NotNow => Err(Problem::unavailable(
            "The report cannot be stored now; bring it again shortly.",
            AGAIN_AFTER_S,
        )),
        ReportResult::UnknownAddress => Err(unknown()),
        ReportResult::Unproven => Err(unproven()),
        ReportResult::NotAReport(why) => Err(Problem::bad_request(why)),
    }
}

/// An upstream expects this for an address that this service did not make.
fn unknown() -> Problem {
    Problem::not_found("No report is expected at this address.")
}

/// The same answer for every wrong address, so that it does not help guessing.
fn unproven() -> Problem {
    Problem::forbidden("Nothing proves that the carrier sent this.")
}

/// Like `wrong_method`, but without repeating the secret address.
async fn not_a_report(method: Method) -> Response {
    if method == Method::OPTIONS {
        return wrong_method(method, http::Uri::default()).await;
    }
    Problem::method_not_allowed("Reports are brought with POST.").into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use axum::body::Body;
    use domain::MessageId;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    /// Carrier, message (0 for a text), proof and body.
    type Asked = (String, u64, String, Vec<u8>);

    /// Gives a fixed answer and records the calls.
    struct Scripted {
        answer: ReportResult,
        asked: Mutex<Vec<Asked>>,
    }

    #[async_trait]
    impl CarrierReports for Scripted {
        async fn take(
            &self,
            carrier: &str,
            message: MessageId,
            proof: &str,
            post: CarrierPost<'_>,
        ) -> ReportResult {
            self.record(carrier, message.get(), proof, post)
        }

        async fn take_text(
            &self,
            carrier: &str,
            proof: &str,
            post: CarrierPost<'_>,
        ) -> ReportResult {
            self.record(carrier, 0, proof, post)
        }
    }

    impl Scripted {
        fn record(
            &self,
            carrier: &str,
            message: u64,
            proof: &str,
            post: CarrierPost<'_>,
        ) -> ReportResult {
            assert_eq!(post.header("x-kind"), Some("test"));
            self.asked.lock().expect("not poisoned").push((
                carrier.to_owned(),
                message,
                proof.to_owned(),
                post.body.to_vec(),
            ));
            self.answer.clone()
        }
    }

    fn scripted(answer: ReportResult) -> Arc<Scripted> {
        Arc::new(Scripted {
            answer,
            asked: Mutex::default(),
        })
    }

    struct Answer {
        status: StatusCode,
        retry_after: Option<String>,
        body: String,
    }

    async fn ask(reports: Arc<Scripted>, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("X-Kind", "test");
        let request = request.body(Body::from(body)).expect("a request");
        let response = router(reports).oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let retry_after = head.headers.get("retry-after");
        Answer {
            status: head.status,
            retry_after: retry_after.map(|value| value.to_str().expect("text").to_owned()),
            body: String::from_utf8(body.to_vec()).expect("text"),
        }
    }

    #[tokio::test]
    async fn answers_to_reports_follow_the_contract() {
        let not_a_report = ReportResult::NotAReport("No ID.".to_owned());
        for (answer, status, body) in [
            (ReportResult::Yes, 200, "OK"),
            (
                ReportResult::NotNow,
                503,
                r#"{"message":"The report cannot be stored now; bring it again shortly."}"#,
            ),
            (
                ReportResult::UnknownAddress,
                404,
                r#"{"message":"No report is expected at this address."}"#,
            ),
            (
                ReportResult::Unproven,
                403,
                r#"{"message":"Nothing proves that the carrier sent this."}"#,
            ),
            (not_a_report, 400, r#"{"message":"No ID."}"#),
        ] {
            let reports = scripted(answer);
            let path = "/carriers/a%20b/reports/7/f00d";
            let got = ask(reports.clone(), "POST", path, b"{}".to_vec()).await;
            assert_eq!((got.status.as_u16(), got.body.as_str()), (status, body));
            assert_eq!(got.retry_after.as_deref(), (status == 503).then_some("5"));
            let asked = reports.asked.lock().expect("not poisoned").clone();
            let expected = ("a b".to_owned(), 7, "f00d".to_owned(), b"{}".to_vec());
            assert_eq!(asked, [expected]);
        }
    }

    #[tokio::test]
    async fn a_stored_text_gets_an_empty_answer() {
        for (answer, status) in [
            (ReportResult::TextStored, 204),
            (ReportResult::Unproven, 403),
            (ReportResult::UnknownAddress, 404),
        ] {
            let reports = scripted(answer);
            let request = Request::builder()
                .method("POST")
                .uri("/carriers/beta/inbound/f00d")
                .header("X-Kind", "test")
                .body(Body::from("a=b"))
                .expect("a request");
            let response = router(reports.clone()).oneshot(request).await;
            let (head, body) = response.expect("an answer").into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            assert_eq!(head.status.as_u16(), status);
            assert_eq!(body.is_empty(), status == 204);
            let asked = reports.asked.lock().expect("not poisoned").clone();
            let proof = "f00d".to_owned();
            assert_eq!(asked, [("beta".to_owned(), 0, proof, b"a=b".to_vec())]);
        }
    }

    #[tokio::test]
    async fn answers_to_texts_follow_the_contract() {
        let not_a_text = ReportResult::NotAReport("No ID.".to_owned());
        for (answer, status, body) in [
            (ReportResult::Yes, 200, "OK"),
            (
                ReportResult::Unproven,
                403,
                r#"{"message":"Nothing proves that the carrier sent this."}"#,
            ),
            (not_a_text, 400, r#"{"message":"No ID."}"#),
        ] {
            let reports = scripted(answer);
            let path = "/carriers/a%20b/inbound/f00d";
            let got = ask(reports.clone(), "POST", path, b"{}".to_vec()).await;
            assert_eq!((got.status.as_u16(), got.body.as_str()), (status, body));
            let asked = reports.asked.lock().expect("not poisoned").clone();
            let expected = ("a b".to_owned(), 0, "f00d".to_owned(), b"{}".to_vec());
            assert_eq!(asked, [expected]);
        }
        let reports = scripted(ReportResult::Yes);
        let got = ask(
            reports.clone(),
            "POST",
            "/carriers/%FF/inbound/f00d",
            vec![],
        )
        .await;
        assert_eq!(got.status.as_u16(), 403);
        let got = ask(reports, "GET", "/carriers/up/inbound/f00d", vec![]).await;
        assert_eq!(got.status.as_u16(), 405);
        assert!(!got.body.contains("f00d"), "{}", got.body);
    }

    #[tokio::test]
    async fn invalid_reports_are_refused() {
        let large = vec![b' '; MAX_REPORT_BYTES + 1];
        for (name, method, path, body, status) in [
            (
                "no number",
                "POST",
                "/carriers/up/reports/x/f00d",
                vec![],
                403,
            ),
            ("ID 0", "POST", "/carriers/up/reports/0/f00d", vec![], 403),
            (
                "not text",
                "POST",
                "/carriers/%FF/reports/7/f00d",
                vec![],
                403,
            ),
            (
                "too large",
                "POST",
                "/carriers/up/reports/7/f00d",
                large,
                400,
            ),
            ("GET", "GET", "/carriers/up/reports/7/f00d", vec![], 405),
            (
                "OPTIONS",
                "OPTIONS",
                "/carriers/up/reports/7/f00d",
                vec![],
                204,
            ),
        ] {
            let reports = scripted(ReportResult::Yes);
            let got = ask(reports.clone(), method, path, body).await;
            assert_eq!(got.status.as_u16(), status, "{name}");
            assert!(!got.body.contains("f00d"), "{name}: {}", got.body);
            let asked = reports.asked.lock().expect("not poisoned");
            assert!(asked.is_empty(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_report_may_be_as_large_as_the_limit() {
        let reports = scripted(ReportResult::Yes);
        let body = vec![b' '; MAX_REPORT_BYTES];
        let got = ask(reports, "POST", "/carriers/up/reports/7/f00d", body).await;
        assert_eq!(got.status, StatusCode::OK);
    }
}
