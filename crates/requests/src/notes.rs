//! What the handling of a request notes for the server that answers it: the caller's rate limit, and whose request it is,
//! for the log of refused requests.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::response::Response;
use domain::{Access, Code};
use engine::identity::rate::Allowance;
use engine::identity::request_log::{RefusedAnswer, RequestLog};
use http::{Extensions, Method, StatusCode};

/// The server puts an empty one into each request, and reads it with the answer. It is one allocation; to note something
/// takes no further one.
#[derive(Clone, Default)]
pub struct RequestNotes(Arc<Notes>);

#[derive(Default)]
struct Notes {
    allowance: OnceLock<Allowance>,
    caller: OnceLock<KnownCaller>,
}

struct KnownCaller {
    log: Arc<RequestLog>,
    access: Arc<Access>,
    route: Option<MatchedPath>,
}

/// Why a request was refused, in the extensions of its answer.
#[derive(Debug, Clone)]
pub struct RefusalNote {
    /// The tool that was called by MCP.
    pub tool: Option<&'static str>,
    /// That of the answer; for a tool, that of the REST API.
    pub status: StatusCode,
    /// The service error code, if the catalogue has one.
    pub error: Option<Code>,
    /// The message for the caller.
    pub message: String,
}

impl RequestNotes {
    /// Notes whose request this is.
    pub fn set_caller(request: &Extensions, log: &Arc<RequestLog>, access: &Arc<Access>) {
        let Some(notes) = request.get::<Self>() else {
            return;
        };
        notes.0.caller.get_or_init(|| KnownCaller {
            log: log.clone(),
            access: access.clone(),
            route: request.get::<MatchedPath>().cloned(),
        });
    }

    pub(crate) fn set_allowance(request: &Extensions, allowance: Allowance) {
        if let Some(notes) = request.get::<Self>() {
            notes.0.allowance.get_or_init(|| allowance);
        }
    }

    pub(crate) fn allowance(&self) -> Option<&Allowance> {
        self.0.allowance.get()
    }

    /// Logs the request if it was refused and its caller is known.
    pub fn log_refusal(&self, method: &Method, response: &Response) {
        let note = response.extensions().get::<RefusalNote>();
        let status = note.map_or(response.status(), |note| note.status);
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        let Some(caller) = self.0.caller.get() else {
            return;
        };
        let route = caller.route.as_ref().map_or("", MatchedPath::as_str);
        let route = match note.and_then(|note| note.tool) {
            Some(tool) => Cow::from(format!("{route} {tool}")),
            None => Cow::from(route),
        };
        let answer = RefusedAnswer {
            method: method.as_str(),
            route: &route,
            status: status.as_u16(),
            error: note.and_then(|note| note.error).map(Code::number),
            message: note.map_or("", |note| note.message.as_str()),
        };
        caller.log.record(&caller.access, answer);
    }
}
