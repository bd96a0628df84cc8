//! A real browser for tests: Debian's chromium without a window, which does what a person would do.
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
//! page.assert_quiet();
//! page.assert_accessible().await;
//! page.picture("overview").await;
//! # }
//! ```
//!
//! # How things are found
//!
//! Buttons and links by what they say, fields by their label, and only then by CSS:
//!
//! * `"Sign in"`: whole name first, then a name that starts with it, then one that contains it, in any case of letters.
//! * `"#email"`, `"input[name=email]"`: CSS, where no name fits.
//! * `"+37120000001 >> Replay"`: the one in the row, item, section or form that says the first part. The first part
//!   may be CSS as well: `"main >> Send"`.
//!
//! A name that fits several things fails, as a person would not know which to take; links to the same address are one.
//! Whatever is looked for is waited for, so no test needs to know how fast a page is.
//!
//! # What is real
//!
//! Clicks are those of a mouse at the middle of what is clicked, scrolled into view; what lies under something else
//! cannot be clicked. Text is typed into the field that has the focus. Options of a list are set by script with the
//! events that a browser sends, for the open list is drawn by the system and out of reach.
//!
//! After a click or a key, the page that it leads to is waited for. What a script of the page does later is not: use
//! [`Page::wait_for`] and its kin.
//!
//! Everything that goes wrong panics, with what was looked for, the address, what the page shows and what the browser
//! complained of.

mod acts;
mod page;
mod pictures;
mod pipe;
mod program;
mod seat;
mod watch;

pub use page::Page;

use std::sync::Arc;

use serde_json::json;

use pipe::Pipe;
use program::Program;
use seat::Seat;

/// A running chromium, with a profile of its own. It ends when it and all its pages are dropped.
///
/// One is enough for a test: each [`Chrome::page`] has its own cookies. Only so many run at a time on a machine, so a
/// test that starts a second one beside the first may wait for itself.
#[derive(Debug)]
pub struct Chrome {
    running: Arc<Running>,
}

/// Ends in this order: the program, then the place that it took.
#[derive(Debug)]
struct Running {
    pipe: Arc<Pipe>,
    program: Program,
    _seat: Seat,
}

impl Chrome {
    /// Waits until there is room for one more, and starts it. Panics when it does not come up, and says what to
    /// install.
    pub async fn start() -> Self {
        let seat = Seat::take().await;
        let (program, input, output) = Program::start();
        let pipe = Pipe::open(input, output);
        let running = Running {
            pipe,
            program,
            _seat: seat,
        };
        let chrome = Self {
            running: Arc::new(running),
        };
        if let Err(error) = chrome.call("Browser.getVersion", json!({})).await {
            let said = chrome.running.program.output();
            panic!("chromium does not answer ({error}); it wrote:\n{said}");
        }
        chrome
    }

    /// A new page that shares nothing with the others: as if another person sat at another machine. It is 1280 by 800,
    /// light, and has scripts.
    pub async fn page(&self) -> Page {
        Page::new(Arc::clone(&self.running))
            .await
            .unwrap_or_else(|error| panic!("chromium gives no page: {error}"))
    }

    async fn call(
        &self,
        method: &str,
        parameters: serde_json::Value,
    ) -> Result<serde_json::Value, String> {
        self.running.pipe.call(None, method, parameters).await
    }
}
