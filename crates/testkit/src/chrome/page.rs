//! A page: going somewhere, reading, waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Running;
use super::watch::Watch;
use crate::PATIENCE;

const POLL: Duration = Duration::from_millis(15);
/// What is shown of a page's text when something fails.
const SHOWN_CHARS: usize = 3_000;

/// A page in a browser, with cookies of its own. How things are found is said [above](super).
#[derive(Debug)]
pub struct Page {
    running: Arc<Running>,
    context: String,
    pub(super) frame: String,
    session: String,
    watch: Arc<Watch>,
    patience_ms: AtomicU64,
    /// Of the window.
    pub(super) width: AtomicU32,
}

impl Page {
    pub(super) async fn new(running: Arc<Running>) -> Result<Self, String> {
        let pipe = &running.pipe;
        let made = pipe
            .call(None, "Target.createBrowserContext", json!({}))
            .await?;
        let context = text_of(&made["browserContextId"]);
        let blank = json!({ "url": "about:blank", "browserContextId": context });
        let made = pipe.call(None, "Target.createTarget", blank).await?;
        let frame = text_of(&made["targetId"]);
        let attach = json!({ "targetId": frame, "flatten": true });
        let attached = pipe.call(None, "Target.attachToTarget", attach).await?;
        let session = text_of(&attached["sessionId"]);
        let watch = Arc::new(Watch::new(&frame));
        pipe.watch(&session, Arc::clone(&watch));
        let deny = json!({ "behavior": "deny", "browserContextId": context });
        pipe.call(None, "Browser.setDownloadBehavior", deny).await?;
        let page = Self {
            running,
            context,
            frame,
            session,
            watch,
            patience_ms: AtomicU64::new(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)),
            width: AtomicU32::new(0),
        };
        for domain in ["Page", "Runtime", "Log", "Network", "Inspector"] {
            page.call(&format!("{domain}.enable"), json!({})).await?;
        }
        page.set_viewport(1280, 800).await;
        page.set_dark(false).await;
        Ok(page)
    }

    /// Goes to an address and waits until all of the page is loaded. Any status will do ([`Page::status`] has it);
    /// no answer fails.
    pub async fn open(&self, url: &str) {
        let went = self.order("Page.navigate", json!({ "url": url })).await;
        if let Some(error) = went["errorText"].as_str() {
            self.fail(&format!("cannot open {url}: {error}")).await;
        }
        self.settle().await;
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        self.order("Page.reload", json!({})).await;
        self.settle().await;
    }

    /// Goes back to the page before.
    pub async fn back(&self) {
        let history = self.order("Page.getNavigationHistory", json!({})).await;
        let before = history["currentIndex"].as_u64().unwrap_or(0).checked_sub(1);
        let Some(before) = before.and_then(|before| usize::try_from(before).ok()) else {
            self.fail("there is no page before this one").await;
        };
        let entry = json!({ "entryId": history["entries"][before]["id"] });
        self.order("Page.navigateToHistoryEntry", entry).await;
        self.settle().await;
    }

    /// The status of the document, such as 200; `None` before any was loaded.
    pub fn status(&self) -> Option<u16> {
        self.watch.status()
    }

    /// The address that the page is at.
    pub async fn address(&self) -> String {
        text_of(&self.evaluate("location.href").await)
    }

    /// The address without scheme and host: path and query.
    pub async fn path(&self) -> String {
        text_of(&self.evaluate("location.pathname + location.search").await)
    }

    /// What the page shows as text, as somebody who copies all of it would get.
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

    /// The value of a JavaScript expression in the page, as JSON; a promise is awaited. An exception fails.
    pub async fn evaluate(&self, expression: &str) -> Value {
        let until = self.deadline();
        loop {
            match self.try_evaluate(expression, None).await {
                Ok(value) => return value,
                // The page went on while it was asked: the next one answers.
                Err(error) if is_between_pages(&error) && Instant::now() < until => {
                    tokio::time::sleep(POLL).await;
                }
                Err(error) => self.fail(&format!("`{expression}`: {error}")).await,
            }
        }
    }

    /// Waits until the page shows this text. Runs of white space count as one space.
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

    /// Waits until the address, without scheme and host, is this one.
    pub async fn wait_for_path(&self, path: &str) {
        let at = format!(
            "location.pathname + location.search === {}",
            Value::from(path)
        );
        self.wait(&format!("the address {path}"), &at).await;
    }

    /// How long whatever is looked for may take; 15 seconds by default.
    pub fn set_patience(&self, patience: Duration) {
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.patience_ms.store(patience, Ordering::Relaxed);
    }

    /// What the browser complained of since the page was made or [`Page::forget_noise`]: errors that scripts wrote to
    /// the console or threw, breaches of the content policy, dialogs, and requests that failed or were refused (the
    /// page itself only from status 500).
    pub fn noise(&self) -> Vec<String> {
        self.watch.noise()
    }

    /// Forgets what the browser complained of, for a test that provokes it.
    pub fn forget_noise(&self) {
        self.watch.forget_noise();
    }

    /// Fails when there is any [`Page::noise`].
    pub fn assert_quiet(&self) {
        let noise = self.noise();
        assert!(noise.is_empty(), "complaints:\n  {}", noise.join("\n  "));
    }

    /// Waits until the page is not on its way to another.
    pub(super) async fn settle(&self) {
        let until = self.deadline();
        // The answer comes behind all events of what was done before. A page that is on its way cannot answer.
        let _on_its_way = self.try_evaluate("1", None).await;
        while self.watch.is_busy() {
            if Instant::now() >= until {
                self.fail("the page was not loaded").await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.patience_ms.load(Ordering::Relaxed))
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
                self.fail(&format!("waited in vain for {what}")).await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// One try, in the page's own world or in another one of it.
    pub(crate) async fn try_evaluate(
        &self,
        expression: &str,
        world: Option<u64>,
    ) -> Result<Value, String> {
        let mut order = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
        });
        if let Some(world) = world {
            order["contextId"] = world.into();
        }
        let mut answer = self.call("Runtime.evaluate", order).await?;
        if let Some(details) = answer.get("exceptionDetails") {
            let description = details["exception"]["description"].as_str();
            let text = description.or(details["text"].as_str());
            return Err(text.unwrap_or("an exception").to_owned());
        }
        Ok(answer["result"]["value"].take())
    }

    pub(super) async fn call(&self, method: &str, parameters: Value) -> Result<Value, String> {
        let session = Some(self.session.as_str());
        self.running.pipe.call(session, method, parameters).await
    }

    /// An order that a page cannot refuse.
    pub(super) async fn order(&self, method: &str, parameters: Value) -> Value {
        match self.call(method, parameters).await {
            Ok(answer) => answer,
            Err(error) => self.fail(&error).await,
        }
    }

    /// Ends the test, with what is needed to see why.
    pub(crate) async fn fail(&self, what: &str) -> ! {
        let see = "[location.href, document.body?.innerText ?? '']";
        let seen = self.try_evaluate(see, None).await.unwrap_or_default();
        let text = seen[1].as_str().unwrap_or("nothing that can be read");
        let text: String = text.chars().take(SHOWN_CHARS).collect();
        let address = seen[0].as_str().unwrap_or("an unknown address");
        let noise = self.noise();
        let complaints = if noise.is_empty() {
            String::new()
        } else {
            format!("\n--- complaints\n{}", noise.join("\n"))
        };
        panic!("{what}\n--- at {address}, which shows\n{text}{complaints}\n---");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let pipe = &self.running.pipe;
        pipe.forget(&self.session);
        let context = json!({ "browserContextId": self.context });
        pipe.tell(None, "Target.disposeBrowserContext", context);
    }
}

/// An expression: whether the page shows a text.
fn shows(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = Value::from(words.join(" "));
    format!(r"(document.body?.innerText ?? '').replace(/\s+/g, ' ').includes({words})")
}

/// Whether the page was left while it was asked.
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
