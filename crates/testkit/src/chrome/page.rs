//! A page: navigating, reading, waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Browser;
use super::monitor::PageMonitor;
use crate::TEST_TIMEOUT;

const POLL: Duration = Duration::from_millis(15);
/// How much of a page's text is shown when something fails.
const MAX_SHOWN_CHARS: usize = 3_000;

/// A page in a browser, with its own cookies. The [module](super) describes how elements are found.
#[derive(Debug)]
pub struct Page {
    browser: Arc<Browser>,
    context: String,
    pub(super) frame: String,
    session: String,
    monitor: Arc<PageMonitor>,
    timeout_ms: AtomicU64,
    /// The width of the window.
    pub(super) width: AtomicU32,
}

impl Page {
    pub(super) async fn new(browser: Arc<Browser>) -> Result<Self, String> {
        let pipe = &browser.pipe;
        let created = pipe
            .call(None, "Target.createBrowserContext", json!({}))
            .await?;
        let context = text_of(&created["browserContextId"]);
        let blank = json!({ "url": "about:blank", "browserContextId": context });
        let created = pipe.call(None, "Target.createTarget", blank).await?;
        let frame = text_of(&created["targetId"]);
        let attach = json!({ "targetId": frame, "flatten": true });
        let attached = pipe.call(None, "Target.attachToTarget", attach).await?;
        let session = text_of(&attached["sessionId"]);
        let monitor = Arc::new(PageMonitor::new(&frame));
        pipe.add_monitor(&session, Arc::clone(&monitor));
        let deny = json!({ "behavior": "deny", "browserContextId": context });
        pipe.call(None, "Browser.setDownloadBehavior", deny).await?;
        let page = Self {
            browser,
            context,
            frame,
            session,
            monitor,
            timeout_ms: AtomicU64::new(u64::try_from(TEST_TIMEOUT.as_millis()).unwrap_or(u64::MAX)),
            width: AtomicU32::new(0),
        };
        for domain in ["Page", "Runtime", "Log", "Network", "Inspector"] {
            page.call(&format!("{domain}.enable"), json!({})).await?;
        }
        page.set_viewport(1280, 800).await;
        page.set_dark(false).await;
        Ok(page)
    }

    /// Opens an address and waits until the page is loaded. Any status is accepted (see [`Page::status`]); no answer
    /// fails.
    pub async fn open(&self, url: &str) {
        let result = self.command("Page.navigate", json!({ "url": url })).await;
        if let Some(error) = result["errorText"].as_str() {
            self.fail(&format!("cannot open {url}: {error}")).await;
        }
        self.settle().await;
    }

    /// Reloads the page.
    pub async fn reload(&self) {
        self.command("Page.reload", json!({})).await;
        self.settle().await;
    }

    /// Goes back to the previous page.
    pub async fn back(&self) {
        let history = self.command("Page.getNavigationHistory", json!({})).await;
        let before = history["currentIndex"].as_u64().unwrap_or(0).checked_sub(1);
        let Some(before) = before.and_then(|before| usize::try_from(before).ok()) else {
            self.fail("there is no page before this one").await;
        };
        let entry = json!({ "entryId": history["entries"][before]["id"] });
        self.command("Page.navigateToHistoryEntry", entry).await;
        self.settle().await;
    }

    /// The status of the document, such as 200; `None` before one was loaded.
    pub fn status(&self) -> Option<u16> {
        self.monitor.status()
    }

    /// The address of the page.
    pub async fn address(&self) -> String {
        text_of(&self.evaluate("location.href").await)
    }

    /// The path and query of the address.
    pub async fn path(&self) -> String {
        text_of(&self.evaluate("location.pathname + location.search").await)
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        text_of(&self.evaluate("document.body.innerText").await)
    }

    /// How many elements a CSS selector matches, visible or not.
    pub async fn count(&self, css: &str) -> usize {
        let css = Value::from(css);
        let count = format!("document.querySelectorAll({css}).length");
        let count = self.evaluate(&count).await;
        count
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .expect("a number")
    }

    /// The value of a JavaScript expression in the page, as JSON. Promises are awaited; an exception fails.
    pub async fn evaluate(&self, expression: &str) -> Value {
        let until = self.deadline();
        loop {
            match self.try_evaluate(expression, None).await {
                Ok(value) => return value,
                // The page was left in the meantime, so ask the next one.
                Err(error) if is_between_pages(&error) && Instant::now() < until => {
                    tokio::time::sleep(POLL).await;
                }
                Err(error) => self.fail(&format!("`{expression}`: {error}")).await,
            }
        }
    }

    /// Waits until the page shows this text. White space is collapsed.
    pub async fn wait_for(&self, text: &str) {
        let shown = shows(text);
        self.wait(&format!("the text {text:?}"), &shown).await;
    }

    /// Waits until the page no longer shows this text.
    pub async fn wait_gone(&self, text: &str) {
        let gone = format!("!({})", shows(text));
        self.wait(&format!("the text {text:?} to go"), &gone).await;
    }

    /// Waits until a JavaScript expression in the page is true.
    pub async fn wait_until(&self, expression: &str) {
        self.wait(&format!("`{expression}`"), expression).await;
    }

    /// Waits until the address has this path and query, apart from a notice (`said`).
    pub async fn wait_for_path(&self, path: &str) {
        let at = format!(
            "(location.pathname + location.search).replace(/[?&]said=[^&]*$/, '') === {}",
            Value::from(path)
        );
        self.wait(&format!("the address {path}"), &at).await;
    }

    /// Sets how long to wait for an element or a state; [`TEST_TIMEOUT`] by default.
    pub fn set_timeout(&self, timeout: Duration) {
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms.store(timeout, Ordering::Relaxed);
    }

    /// Errors since the page was opened or [`Page::clear_browser_errors`] was called: errors that scripts wrote to the
    /// console or threw, violations of the content policy, dialogs, and requests that failed or were refused (the page
    /// itself only from status 500).
    pub fn browser_errors(&self) -> Vec<String> {
        self.monitor.errors()
    }

    /// Clears the errors, for a test that provokes some.
    pub fn clear_browser_errors(&self) {
        self.monitor.clear_errors();
    }

    /// Fails if there are any [`Page::browser_errors`].
    pub fn assert_no_browser_errors(&self) {
        let errors = self.browser_errors();
        assert!(
            errors.is_empty(),
            "browser errors:\n  {}",
            errors.join("\n  ")
        );
    }

    /// Waits until the page has finished loading.
    pub(super) async fn settle(&self) {
        let until = self.deadline();
        // The answer arrives after all events of earlier actions. A page that is being left cannot answer.
        let _being_left = self.try_evaluate("1", None).await;
        while self.monitor.is_busy() {
            if Instant::now() >= until {
                self.fail("the page was not loaded").await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.timeout_ms.load(Ordering::Relaxed))
    }

    async fn wait(&self, what: &str, expression: &str) {
        let until = self.deadline();
        loop {
            let state = self.try_evaluate(&format!("!!({expression})"), None).await;
            match state {
                Ok(Value::Bool(true)) => return,
                Err(error) if !is_between_pages(&error) => {
                    self.fail(&format!("{what}: {error}")).await;
                }
                _ => {}
            }
            if Instant::now() >= until {
                self.fail(&format!("timed out waiting for {what}")).await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Evaluates once, in the page's own world or in an isolated one.
    pub(crate) async fn try_evaluate(
        &self,
        expression: &str,
        world: Option<u64>,
    ) -> Result<Value, String> {
        let mut parameters = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
        });
        if let Some(world) = world {
            parameters["contextId"] = world.into();
        }
        let mut answer = self.call("Runtime.evaluate", parameters).await?;
        if let Some(details) = answer.get("exceptionDetails") {
            let description = details["exception"]["description"].as_str();
            let text = description.or(details["text"].as_str());
            return Err(text.unwrap_or("an exception").to_owned());
        }
        Ok(answer["result"]["value"].take())
    }

    pub(super) async fn call(&self, method: &str, parameters: Value) -> Result<Value, String> {
        let session = Some(self.session.as_str());
        self.browser.pipe.call(session, method, parameters).await
    }

    /// Sends a command that must succeed.
    pub(super) async fn command(&self, method: &str, parameters: Value) -> Value {
        match self.call(method, parameters).await {
            Ok(answer) => answer,
            Err(error) => self.fail(&error).await,
        }
    }

    /// Fails the test with the details of the page.
    pub(crate) async fn fail(&self, what: &str) -> ! {
        let details = "[location.href, document.body?.innerText ?? '']";
        let details = self.try_evaluate(details, None).await.unwrap_or_default();
        let text = details[1].as_str().unwrap_or("no readable text");
        let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        let address = details[0].as_str().unwrap_or("an unknown address");
        let errors = self.browser_errors();
        let errors = if errors.is_empty() {
            String::new()
        } else {
            format!("\n--- browser errors\n{}", errors.join("\n"))
        };
        panic!("{what}\n--- at {address}, which shows\n{text}{errors}\n---");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let pipe = &self.browser.pipe;
        pipe.remove_monitor(&self.session);
        let context = json!({ "browserContextId": self.context });
        pipe.call_without_answer(None, "Target.disposeBrowserContext", context);
    }
}

/// A JavaScript expression for whether the page shows a text.
fn shows(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = Value::from(words.join(" "));
    format!(r"(document.body?.innerText ?? '').replace(/\s+/g, ' ').includes({words})")
}

/// Whether the page was left during the evaluation.
pub(super) fn is_between_pages(error: &str) -> bool {
    [
        "Execution context was destroyed",
        "Cannot find default execution context",
        "Cannot find context with specified id",
        "Inspected target navigated or closed",
        "uniqueContextId not found",
    ]
    .iter()
    .any(|known| error.contains(known))
}

pub(super) fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
