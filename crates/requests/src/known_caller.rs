//! Notes refused requests in the log of their token.

use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::response::Response;
use domain::Access;
use engine::identity::request_log::{RefusedAnswer, RequestLog};
use http::{Extensions, Method};

use crate::problem::{ERROR_CODE, ProblemMessage};

/// The caller of a request. The server puts an empty one into each request, the API fills it in when it knows the token,
/// and the server reads it if the request was refused.
#[derive(Clone, Default)]
pub struct KnownCaller(Arc<OnceLock<Known>>);

struct Known {
    log: Arc<RequestLog>,
    access: Arc<Access>,
    route: Option<MatchedPath>,
}

impl KnownCaller {
    /// Remembers whose request this is.
    pub fn fill(request: &Extensions, log: &Arc<RequestLog>, access: &Arc<Access>) {
        let Some(caller) = request.get::<Self>() else {
            return;
        };
        caller.0.get_or_init(|| Known {
            log: log.clone(),
            access: access.clone(),
            route: request.get::<MatchedPath>().cloned(),
        });
    }

    /// Notes the request if it was refused and its caller is known.
    pub fn log(&self, method: &Method, response: &Response) {
        let status = response.status();
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        let Some(known) = self.0.get() else { return };
        let error = response.headers().get(ERROR_CODE);
        let error = error.and_then(|code| code.to_str().ok()?.parse().ok());
        let message = response.extensions().get::<ProblemMessage>();
        let answer = RefusedAnswer {
            method: method.as_str(),
            route: known.route.as_ref().map_or("", MatchedPath::as_str),
            status: status.as_u16(),
            error,
            message: message.map_or("", |message| message.0.as_str()),
        };
        known.log.record(&known.access, answer);
    }
}
