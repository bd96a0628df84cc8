//! What a page does by itself: where it is on its way to, and what the browser complains of.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pipe::locked;

/// More of one kind say nothing new.
const MAX_NOISE: usize = 100;
/// Requests whose address is kept until they are answered.
const MAX_REQUESTS: usize = 1_000;

/// What was asked for and has not begun by then was refused, by a content policy for example.
const BEGIN_DEADLINE: Duration = Duration::from_secs(3);
const BEGIN_AFTER_CLEARED: Duration = Duration::from_millis(300);

/// The state of one page, as its events tell it.
#[derive(Debug)]
pub(super) struct Watch {
    /// The ID of the main frame, which is that of the target.
    frame: String,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Another document was asked for and should begin to load by then.
    expected_until: Option<Instant>,
    is_loading: bool,
    status: Option<u16>,
    noise: Vec<String>,
    requests: HashMap<String, String>,
}

impl Watch {
    pub(super) fn new(frame: &str) -> Self {
        Self {
            frame: frame.to_owned(),
            seen: Mutex::default(),
        }
    }

    /// Whether it is on its way to another document.
    pub(super) fn is_busy(&self) -> bool {
        let seen = locked(&self.seen);
        let is_expected = seen
            .expected_until
            .is_some_and(|until| Instant::now() < until);
        is_expected || seen.is_loading
    }

    /// The status of the document.
    pub(super) fn status(&self) -> Option<u16> {
        locked(&self.seen).status
    }

    pub(super) fn noise(&self) -> Vec<String> {
        locked(&self.seen).noise.clone()
    }

    pub(super) fn forget_noise(&self) {
        locked(&self.seen).noise.clear();
    }

    /// Takes an event.
    pub(super) fn note(&self, method: &str, about: &Value) {
        let mut seen = locked(&self.seen);
        let is_main = about["frameId"] == self.frame.as_str();
        match method {
            // A form says only the first while it is clicked, a link to a place on the page only the second.
            "Page.frameRequestedNavigation" | "Page.frameScheduledNavigation" if is_main => {
                seen.expected_until = Some(Instant::now() + BEGIN_DEADLINE);
            }
            // It began, or never will; the process that tells is not the one that loads, so either may come first.
            "Page.frameClearedScheduledNavigation" if is_main && seen.expected_until.is_some() => {
                seen.expected_until = Some(Instant::now() + BEGIN_AFTER_CLEARED);
            }
            "Page.frameStartedLoading" | "Page.frameStartedNavigating" if is_main => {
                seen.expected_until = None;
                seen.is_loading = true;
            }
            "Page.frameStoppedLoading" if is_main => seen.is_loading = false,
            "Page.navigatedWithinDocument" if is_main => seen.expected_until = None,
            "Page.frameNavigated" if about["frame"]["id"] == self.frame.as_str() => {
                seen.expected_until = None;
            }
            "Page.javascriptDialogOpening" => seen.complain("dialog", &about["message"]),
            "Runtime.consoleAPICalled" => seen.console(about),
            "Runtime.exceptionThrown" => seen.exception(&about["exceptionDetails"]),
            "Log.entryAdded" => seen.log(&about["entry"]),
            "Network.requestWillBeSent" => seen.asked(about),
            "Network.responseReceived" => {
                let is_document = is_main && about["type"] == "Document";
                seen.answered(is_document, &about["response"]);
            }
            "Network.loadingFailed" => seen.failed(about),
            "Inspector.targetCrashed" => seen.complain("crash", &Value::Null),
            _ => {}
        }
    }
}

impl Seen {
    fn complain(&mut self, kind: &str, what: &Value) {
        let what = what
            .as_str()
            .map_or_else(|| what.to_string(), str::to_owned);
        if self.noise.len() < MAX_NOISE {
            self.noise.push(format!("{kind}: {what}"));
        }
    }

    fn console(&mut self, about: &Value) {
        if about["type"] != "error" && about["type"] != "assert" {
            return;
        }
        let shown = |argument: &Value| match &argument["value"] {
            Value::Null => argument["description"].as_str().unwrap_or("?").to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let arguments = about["args"].as_array().into_iter().flatten();
        let text: Vec<_> = arguments.map(shown).collect();
        self.complain("console", &text.join(" ").into());
    }

    fn exception(&mut self, details: &Value) {
        let description = &details["exception"]["description"];
        let text = if description.is_string() {
            description
        } else {
            &details["text"]
        };
        self.complain("script", text);
    }

    /// Content policy and the like. Failed requests stand here as well, without saying whether they matter.
    fn log(&mut self, entry: &Value) {
        if entry["level"] == "error" && entry["source"] != "network" {
            let source = entry["source"].as_str().unwrap_or("log");
            self.complain(source, &entry["text"]);
        }
    }

    fn asked(&mut self, about: &Value) {
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.clear();
        }
        let id = about["requestId"].as_str().unwrap_or_default();
        let address = about["request"]["url"].as_str().unwrap_or_default();
        self.requests.insert(id.to_owned(), address.to_owned());
    }

    /// A document may well be a refusal, which a test sees by its status; what else a page asks for must be there.
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
            self.complain("request", &format!("{status} from {address}").into());
        }
    }

    fn failed(&mut self, about: &Value) {
        let id = about["requestId"].as_str().unwrap_or_default();
        let address = self.requests.remove(id).unwrap_or_default();
        let error = about["errorText"].as_str().unwrap_or_default();
        // Whoever leaves a page ends what it was asking for.
        let is_ended = about["canceled"] == true || error == "net::ERR_ABORTED";
        if !is_ended {
            self.complain("request", &format!("{error} at {address}").into());
        }
    }
}
