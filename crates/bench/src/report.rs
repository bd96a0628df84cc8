//! What the reports of all benchmarks share.

use crate::goals::Goal;
use std::fmt::Write as _;
use std::time::Duration;
use std::{fs, thread};

/// Writes the table of goals.
pub(crate) fn write_goals(text: &mut String, goals: &[Goal]) -> std::fmt::Result {
    writeln!(text, "\n| goal | measured | reached |\n|---|--:|---|")?;
    for goal in goals {
        let reached = match goal.reached {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        writeln!(text, "| {} | {} | {reached} |", goal.text, goal.measured)?;
    }
    Ok(())
}

/// The median; of an even number of values, the higher of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// `2 cores, MODEL, 8 GiB`, as far as it is known.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|total| total.trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(String::new(), |kib| {
            format!(", {} GiB", (kib + (1 << 19)) >> 20)
        });
    format!("{cores} cores, {model}{memory}")
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
