//! A real browser for tests: Debian's chromium without a window, controlled like a person would use it.
//!
//! ```no_run
//! # async fn example(url: String) {
//! use testkit::chrome::Chrome;
//!
//! let chrome = Chrome::start().await;
//! let page = chrome.page().await;
//! page.open(&url).await;
//! page.fill("Email", "ann@example.com").await;
//! page.fill("Password", "violet tram eleven").await;
//! page.click("Sign in").await;
//! page.wait_for("Overview").await;
//! page.assert_no_browser_errors();
//! page.assert_accessible().await;
//! page.save_screenshots("overview").await;
//! # }
//! ```
//!
//! # How elements are found
//!
//! Buttons and links by their text, fields by their label, and only then by CSS:
//!
//! * `"Sign in"`: the whole name first, then a name that starts with it, then one that contains it. Case is ignored.
//! * `"#email"`, `"input[name=email]"`: CSS, if no name matches.
//! * `"+37120000001 >> Replay"`: only inside the row, item, section or form that contains the first text. The first
//!   part may be CSS as well: `"main >> Send"`.
//!
//! A name that matches several elements fails, unless they are links to the same address. Every call waits for its
//! element, so tests need not know how fast a page is.
//!
//! # How input is simulated
//!
//! Clicks are mouse events at the middle of the element, which is scrolled into view. An element that is covered by
//! another one cannot be clicked. Text is typed into the field that has the focus. Options of a list are selected by
//! script with the events that a browser sends, because the system draws the open list.
//!
//! After a click or a key press, the next page is waited for, but not what its scripts do later: use [`Page::wait_for`]
//! and similar functions for that.
//!
//! Every failure panics with the wanted element, the address, the text of the page and the errors of the browser.

mod actions;
mod monitor;
mod page;
mod permit;
mod pipe;
mod program;
mod screenshots;

pub use page::Page;

use std::sync::Arc;

use serde_json::json;

use permit::BrowserPermit;
use pipe::Pipe;
use program::Program;

/// A running chromium with its own profile. It ends when it and all its pages are dropped.
///
/// A test needs only one: each [`Chrome::page`] has its own cookies. The number of browsers on a machine is limited, so
/// a test that starts a second one may wait for itself.
#[derive(Debug)]
pub struct Chrome {
    browser: Arc<Browser>,
}

/// Dropped in this order: first the program, then its permit.
#[derive(Debug)]
struct Browser {
    pipe: Arc<Pipe>,
    program: Program,
    _permit: BrowserPermit,
}

impl Chrome {
    /// Waits for a permit and starts it. Panics if it does not start, and says what to install.
    pub async fn start() -> Self {
        let permit = BrowserPermit::acquire().await;
        let (program, input, output) = Program::start();
        let pipe = Pipe::open(input, output);
        let browser = Browser {
            pipe,
            program,
            _permit: permit,
        };
        let chrome = Self {
            browser: Arc::new(browser),
        };
        if let Err(error) = chrome.call("Browser.getVersion", json!({})).await {
            let output = chrome.browser.program.output();
            panic!("chromium does not answer ({error}); it wrote:\n{output}");
        }
        chrome
    }

    /// Opens a new page that shares nothing with the others, like that of another person on another machine. It is 1280
    /// by 800, light, and scripts are enabled.
    pub async fn page(&self) -> Page {
        Page::new(Arc::clone(&self.browser))
            .await
            .unwrap_or_else(|error| panic!("chromium opens no page: {error}"))
    }

    async fn call(
        &self,
        method: &str,
        parameters: serde_json::Value,
    ) -> Result<serde_json::Value, String> {
        self.browser.pipe.call(None, method, parameters).await
    }
}
