//! Follows the events of a page: navigation and browser errors.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pipe::locked;

const MAX_ERRORS: usize = 100;
/// The number of requests whose address is kept until they are answered.
const MAX_REQUESTS: usize = 1_000;

/// A navigation that has not started by then was refused, for example by a content policy.
const START_TIMEOUT: Duration = Duration::from_secs(3);
const START_TIMEOUT_AFTER_CLEARED: Duration = Duration::from_millis(300);

/// The state of one page, derived from its events.
#[derive(Debug)]
pub(super) struct PageMonitor {
    /// The ID of the main frame, which is also the ID of the target.
    frame: String,
    state: Mutex<PageState>,
}

#[derive(Debug, Default)]
struct PageState {
    /// Another document was requested and should start to load by then.
    expected_until: Option<Instant>,
    is_loading: bool,
    status: Option<u16>,
    errors: Vec<String>,
    requests: HashMap<String, String>,
}

impl PageMonitor {
    pub(super) fn new(frame: &str) -> Self {
        Self {
            frame: frame.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Whether the page is loading another document.
    pub(super) fn is_busy(&self) -> bool {
        let state = locked(&self.state);
        let is_expected = state
            .expected_until
            .is_some_and(|until| Instant::now() < until);
        is_expected || state.is_loading
    }

    /// The status of the document.
    pub(super) fn status(&self) -> Option<u16> {
        locked(&self.state).status
    }

    pub(super) fn errors(&self) -> Vec<String> {
        locked(&self.state).errors.clone()
    }

    pub(super) fn clear_errors(&self) {
        locked(&self.state).errors.clear();
    }

    /// Handles an event.
    pub(super) fn handle(&self, method: &str, params: &Value) {
        let mut state = locked(&self.state);
        let is_main = params["frameId"] == self.frame.as_str();
        match method {
            // A click on a form causes only the first event, a link to an anchor only the second.
            "Page.frameRequestedNavigation" | "Page.frameScheduledNavigation" if is_main => {
                state.expected_until = Some(Instant::now() + START_TIMEOUT);
            }
            // It has started or never will. Another process does the loading, so the events may arrive in any order.
            "Page.frameClearedScheduledNavigation" if is_main && state.expected_until.is_some() => {
                state.expected_until = Some(Instant::now() + START_TIMEOUT_AFTER_CLEARED);
            }
            "Page.frameStartedLoading" | "Page.frameStartedNavigating" if is_main => {
                state.expected_until = None;
                state.is_loading = true;
            }
            "Page.frameStoppedLoading" if is_main => state.is_loading = false,
            "Page.navigatedWithinDocument" if is_main => state.expected_until = None,
            "Page.frameNavigated" if params["frame"]["id"] == self.frame.as_str() => {
                state.expected_until = None;
            }
            "Page.javascriptDialogOpening" => state.add_error("dialog", &params["message"]),
            "Runtime.consoleAPICalled" => state.console(params),
            "Runtime.exceptionThrown" => state.exception(&params["exceptionDetails"]),
            "Log.entryAdded" => state.log(&params["entry"]),
            "Network.requestWillBeSent" => state.requested(params),
            "Network.responseReceived" => {
                let is_document = is_main && params["type"] == "Document";
                state.answered(is_document, &params["response"]);
            }
            "Network.loadingFailed" => state.failed(params),
            "Inspector.targetCrashed" => state.add_error("crash", &Value::Null),
            _ => {}
        }
    }
}

impl PageState {
    fn add_error(&mut self, kind: &str, what: &Value) {
        let what = what
            .as_str()
            .map_or_else(|| what.to_string(), str::to_owned);
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(format!("{kind}: {what}"));
        }
    }

    fn console(&mut self, params: &Value) {
        if params["type"] != "error" && params["type"] != "assert" {
            return;
        }
        let shown = |argument: &Value| match &argument["value"] {
            Value::Null => argument["description"].as_str().unwrap_or("?").to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let arguments = params["args"].as_array().into_iter().flatten();
        let text: Vec<_> = arguments.map(shown).collect();
        self.add_error("console", &text.join(" ").into());
    }

    fn exception(&mut self, details: &Value) {
        let description = &details["exception"]["description"];
        let text = if description.is_string() {
            description
        } else {
            &details["text"]
        };
        self.add_error("script", text);
    }

    /// Errors of content policies and similar. Failed requests are left out: `answered` and `failed` handle them.
    fn log(&mut self, entry: &Value) {
        if entry["level"] == "error" && entry["source"] != "network" {
            let source = entry["source"].as_str().unwrap_or("log");
            self.add_error(source, &entry["text"]);
        }
    }

    fn requested(&mut self, params: &Value) {
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.clear();
        }
        let id = params["requestId"].as_str().unwrap_or_default();
        let address = params["request"]["url"].as_str().unwrap_or_default();
        self.requests.insert(id.to_owned(), address.to_owned());
    }

    /// A document may be a refusal, which a test recognizes by its status. Everything else that a page requests must
    /// exist.
    fn answered(&mut self, is_document: bool, response: &Value) {
        let status = response["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok());
        if is_document {
            self.status = status;
        }
        let wrong = if is_document { 500 } else { 400 };
        if let Some(status) = status.filter(|status| *status >= wrong) {
            let address = response["url"].as_str().unwrap_or_default();
            self.add_error("request", &format!("{status} from {address}").into());
        }
    }

    fn failed(&mut self, params: &Value) {
        let id = params["requestId"].as_str().unwrap_or_default();
        let address = self.requests.remove(id).unwrap_or_default();
        let error = params["errorText"].as_str().unwrap_or_default();
        // Leaving a page cancels its requests.
        let is_ended = params["canceled"] == true || error == "net::ERR_ABORTED";
        if !is_ended {
            self.add_error("request", &format!("{error} at {address}").into());
        }
    }
}
