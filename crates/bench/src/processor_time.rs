//! The processor time of processes.

use anyhow::{Context, Result};
use std::fs;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Linux reports processor time to programs in this unit on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// Processor time in the program itself and in the system on its behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl ProcessorTime {
    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

impl Add for ProcessorTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

impl Sub for ProcessorTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

impl Sum for ProcessorTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), Add::add)
    }
}

/// What `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own: ProcessorTime,
    /// Of children that have ended.
    children: ProcessorTime,
}

/// The time of a process and all its threads. It must still run.
pub(crate) fn of_process(pid: u32) -> Result<ProcessorTime> {
    Ok(stat(pid)?.own)
}

/// The time of a process and its children, including children that have ended. Running children are counted if
/// `is_counted` accepts their title, which is their command line.
pub(crate) fn of_process_and_children(
    pid: u32,
    is_counted: impl Fn(&str) -> bool,
) -> Result<ProcessorTime> {
    let processes = fs::read_dir("/proc")?.filter_map(|entry| {
        let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Some((id, stat(id).ok()?))
    });
    let children = processes.filter(|(_, process)| process.parent == pid);
    let counted = children.filter(|(id, _)| {
        let title = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        is_counted(&String::from_utf8_lossy(&title).replace('\0', " "))
    });
    let running: ProcessorTime = counted.map(|(_, child)| child.own).sum();
    let parent = stat(pid)?;
    Ok(parent.own + parent.children + running)
}

fn stat(pid: u32) -> Result<Stat> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&text).with_context(|| format!("{path} is not as expected"))
}

/// The name of the program is the second field, in parentheses, and may contain anything.
fn parse(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let time = |user: usize| {
        let ticks = |field: usize| Some(TICK * fields.get(field)?.parse().ok()?);
        Some(ProcessorTime {
            user: ticks(user)?,
            system: ticks(user + 1)?,
        })
    };
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: time(11)?,
        children: time(13)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{ProcessorTime, Stat, of_process, of_process_and_children, parse};
    use std::time::Duration;

    #[test]
    fn the_fields_after_the_name_are_read() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 100 20 30 4 20 0 1 0 5";
        let time = |user, system| ProcessorTime {
            user: Duration::from_millis(user),
            system: Duration::from_millis(system),
        };
        let expected = Stat {
            parent: 3,
            own: time(1_000, 200),
            children: time(300, 40),
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("7 (a) S 3"), None, "cut off");
    }

    #[test]
    fn this_process_is_found() {
        let pid = std::process::id();
        let alone = of_process(pid).expect("it runs");
        assert!(
            of_process_and_children(pid, |_| true)
                .expect("it runs")
                .total()
                >= alone.total()
        );
    }
}
