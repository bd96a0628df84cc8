//! Progress bars. They are drawn on standard error, and only where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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

fn styled(length: Option<u64>, shown: bool, template: &str) -> ProgressBar {
    let target = if shown {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(template).expect("the templates here are valid");
    ProgressBar::with_draw_target(length, target).with_style(style)
}
