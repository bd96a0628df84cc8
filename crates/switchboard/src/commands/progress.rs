//! Progress bars on standard error, drawn only on a terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use domain::{Clock as _, Timestamp};
use engine::clock::SystemClock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use store::transfer::Watch;

/// How often a copy prints a line if no bar is drawn.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// A bar over a few named steps.
pub(super) fn steps(count: u64, shown: bool) -> ProgressBar {
    styled(Some(count), shown, "{bar:30} {pos}/{len} {msg}")
}

/// A bar over the bytes of a file, or a counter if the size is unknown.
pub(super) fn bytes(total: Option<u64>, shown: bool) -> ProgressBar {
    let template = match total {
        Some(_) => "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
        None => "{spinner} {bytes}, {bytes_per_sec}",
    };
    styled(total, shown, template)
}

/// A bar over the rows of an import.
pub(super) fn rows(count: u64, shown: bool) -> ProgressBar {
    let template = "{bar:30} {human_pos}/{human_len}, {per_sec}, {eta} to go";
    styled(Some(count), shown, template)
}

/// The progress through a period of time: a bar, or nothing if standard error is not a terminal.
pub(super) struct TimeProgress {
    bar: ProgressBar,
    since: Timestamp,
    rows: u64,
}

impl TimeProgress {
    pub(super) fn new(since: Timestamp, until: Timestamp, shown: bool) -> Self {
        let seconds = until.min(SystemClock.now()).as_second() - since.as_second();
        let length = u64::try_from(seconds).unwrap_or_default();
        let template = "{bar:30} {percent}% {msg}, {eta} to go";
        Self {
            bar: styled(Some(length), shown, template),
            since,
            rows: 0,
        }
    }

    /// Shows that everything up to a time is done.
    pub(super) fn advance(&mut self, until: Option<Timestamp>, rows: u64) {
        self.rows += rows;
        if let Some(until) = until {
            let seconds = until.as_second() - self.since.as_second();
            self.bar
                .set_position(u64::try_from(seconds).unwrap_or_default());
        }
        if self.rows > 0 {
            self.bar.set_message(format!("{} messages", self.rows));
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a copy: a bar, or a line now and then if standard error is not a terminal.
pub(super) struct RowProgress {
    bar: ProgressBar,
    prints_lines: bool,
    table: &'static str,
    began: Instant,
    last_line: Instant,
    done: u64,
    total: u64,
}

impl RowProgress {
    pub(super) fn new(shown: bool) -> Self {
        let template = "{bar:30} {human_pos}/{human_len} {msg}, {per_sec}, {eta} to go";
        let now = Instant::now();
        Self {
            bar: styled(Some(0), shown, template),
            prints_lines: shown && !io::stderr().is_terminal(),
            table: "",
            began: now,
            last_line: now,
            done: 0,
            total: 0,
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
        if self.prints_lines && self.total > 0 {
            self.print_line();
        }
    }

    fn print_line(&self) {
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

impl Watch for RowProgress {
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
        if self.prints_lines && self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            self.print_line();
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
