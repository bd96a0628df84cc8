//! Progress bars. They are drawn on standard error, and only where that is a terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use store::transfer::Watch;

/// How often a copy says a line where no bar is drawn.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar over a few steps that are named as they come.
pub(super) fn steps(count: u64, shown: bool) -> ProgressBar {
    styled(Some(count), shown, "{bar:30} {pos}/{len} {msg}")
}

/// A bar over the bytes of a file, or a count of them where their number is not known.
pub(super) fn bytes(total: Option<u64>, shown: bool) -> ProgressBar {
    let template = match total {
        Some(_) => "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
        None => "{spinner} {bytes}, {bytes_per_sec}",
    };
    styled(total, shown, template)
}

/// The rows of a copy: a bar, or a line now and then where standard error is no terminal.
pub(super) struct Rows {
    bar: ProgressBar,
    says_lines: bool,
    table: &'static str,
    began: Instant,
    said: Instant,
    done: u64,
    total: u64,
}

impl Rows {
    pub(super) fn new(shown: bool) -> Self {
        let template = "{bar:30} {human_pos}/{human_len} {msg}, {per_sec}, {eta} to go";
        let now = Instant::now();
        Self {
            bar: styled(Some(0), shown, template),
            says_lines: shown && !io::stderr().is_terminal(),
            table: "",
            began: now,
            said: now,
            done: 0,
            total: 0,
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
        if self.says_lines && self.total > 0 {
            self.say();
        }
    }

    fn say(&self) {
        let seconds = self.began.elapsed().as_secs().max(1);
        let rate = self.done / seconds;
        let left = self.total.saturating_sub(self.done);
        let to_go = left.checked_div(rate).unwrap_or_default();
        eprintln!(
            "{} of {}, {}, {rate} a second, {to_go} s to go",
            self.done, self.total, self.table
        );
    }
}

impl Watch for Rows {
    fn begins(&mut self, total: u64) {
        self.total = total;
        self.began = Instant::now();
        self.bar.set_length(total);
        self.bar.reset();
    }

    fn table(&mut self, table: &'static str) {
        self.table = table;
        self.bar.set_message(table);
    }

    fn advances(&mut self, by: u64) {
        self.done += by;
        self.bar.inc(by);
        if self.says_lines && self.said.elapsed() >= LINE_EVERY {
            self.said = Instant::now();
            self.say();
        }
    }
}

fn styled(length: Option<u64>, shown: bool, template: &str) -> ProgressBar {
    let target = if shown {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(template).expect("the templates here are valid");
    ProgressBar::with_draw_target(length, target).with_style(style)
}
