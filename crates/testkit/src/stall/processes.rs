//! Reads what the kernel counts for the threads of this process, its children and the test's `PostgreSQL`.

use std::collections::{HashMap, HashSet};
use std::process;
use std::time::Duration;
use std::{env, fs};

use super::usage::CpuUsage;
use crate::postgres::POSTGRES_VARIABLE;

/// How many readings use the same list of processes.
const READINGS_PER_LIST: usize = 8;
/// A message passes through this many processes one after the other: a node, the database, the test.
const PROCESSES_IN_SEQUENCE: usize = 3;
const POSTGRES: &str = "postgres";
/// `/proc/stat` counts in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The counters at the last reading.
#[derive(Debug, Default)]
pub(super) struct Processes {
    readings: usize,
    ids: Vec<u32>,
    /// By thread: time on a processor and time waited for one, in nanoseconds.
    threads: HashMap<u32, (u64, u64)>,
    /// Busy and stolen ticks of all processors.
    machine: Option<(u64, u64)>,
}

impl Processes {
    /// Times since the last reading. Values that cannot be read count as zero.
    pub(super) fn read(&mut self) -> CpuUsage {
        if self.readings.is_multiple_of(READINGS_PER_LIST) {
            self.ids = list();
        }
        self.readings += 1;
        let (busy, stolen) = self.read_machine();
        CpuUsage {
            busy,
            stolen,
            ..self.read_threads()
        }
    }

    /// A thread is counted from its second reading on.
    fn read_threads(&mut self) -> CpuUsage {
        let mut now = HashMap::with_capacity(self.threads.len());
        let mut usage = CpuUsage::default();
        let mut longest_waits = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            let mut longest_wait = Duration::ZERO;
            for thread in numbers_in(&format!("/proc/{id}/task")) {
                let path = format!("/proc/{id}/task/{thread}/schedstat");
                let Some(counted) = read_schedstat(&fs::read_to_string(path).unwrap_or_default())
                else {
                    continue;
                };
                now.insert(thread, counted);
                let Some(before) = self.threads.get(&thread) else {
                    continue;
                };
                let waited = Duration::from_nanos(counted.1.saturating_sub(before.1));
                usage.ran += Duration::from_nanos(counted.0.saturating_sub(before.0));
                usage.waited += waited;
                longest_wait = longest_wait.max(waited);
            }
            longest_waits.push(longest_wait);
        }
        longest_waits.sort_unstable_by(|one, other| other.cmp(one));
        usage.longest_waits = longest_waits.iter().take(PROCESSES_IN_SEQUENCE).sum();
        self.threads = now;
        usage
    }

    fn read_machine(&mut self) -> (Duration, Duration) {
        let now = read_stat(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let before = std::mem::replace(&mut self.machine, now);
        let (Some(now), Some(before)) = (now, before) else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let ticks = |now: u64, before: u64| {
            let ticks = now.saturating_sub(before);
            TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        (ticks(now.0, before.0), ticks(now.1, before.1))
    }
}

/// This process, the database servers of the tests, and all their descendants.
fn list() -> Vec<u32> {
    let read = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (name, parent) = read_parent(&stat)?;
        Some((id, parent, name == POSTGRES))
    };
    let all: Vec<_> = numbers_in("/proc").into_iter().filter_map(read).collect();
    let servers = all
        .iter()
        .filter(|(id, _, is_postgres)| *is_postgres && is_our_server(*id));
    let mut ours: HashSet<u32> = servers.map(|(id, ..)| *id).collect();
    ours.insert(process::id());
    // Children may precede their parents in the list, so repeat until nothing is added.
    loop {
        let below = all.iter().filter(|(_, parent, _)| ours.contains(parent));
        let below: Vec<u32> = below.map(|(id, ..)| *id).collect();
        let before = ours.len();
        ours.extend(below);
        if ours.len() == before {
            return ours.into_iter().collect();
        }
    }
}

/// `PostgreSQL` servers are not children of the test process. They are recognized by their folder, whose name contains
/// the ID of the test process, or by their port.
fn is_our_server(id: u32) -> bool {
    let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
    let url = env::var(POSTGRES_VARIABLE).unwrap_or_default();
    let port = url
        .rsplit_once(':')
        .and_then(|(_, rest)| rest.split('/').next());
    let is_shared = port.is_some_and(|port| arguments.contains(&format!("-p {port} ")));
    is_shared || arguments.contains(&format!("_{}_", process::id()))
}

/// The names in a folder that are numbers.
fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).collect()
}

/// Reads `ran waited slices`.
fn read_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// Reads `id (name) state parent …`. A name may contain spaces and brackets.
fn read_parent(stat: &str) -> Option<(&str, u32)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once(" (")?;
    Some((name, rest.split(' ').nth(1)?.parse().ok()?))
}

/// Reads `cpu user nice system idle iowait irq softirq steal …`.
fn read_stat(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields = line.split_whitespace().map(|field| field.parse().ok());
    let fields: Vec<u64> = fields.collect::<Option<_>>()?;
    let [user, nice, system, _idle, _waiting, irq, softirq, steal, ..] = fields[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq, steal))
}

#[cfg(test)]
mod tests {
    use super::{list, read_parent, read_schedstat, read_stat};

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(read_schedstat("12 34 5\n"), Some((12, 34)));
        assert_eq!(read_schedstat(""), None);
        let stat = "17 (a (b) c) S 4 17 17 0";
        assert_eq!(read_parent(stat), Some(("a (b) c", 4)));
        let stat = "cpu  10 1 5 900 7 2 3 40 0 0\ncpu0 1 1 1 1";
        assert_eq!(read_stat(stat), Some((21, 40)));
        assert_eq!(read_stat("intr 0"), None);
    }

    #[test]
    fn this_process_and_its_children_are_listed() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a child");
        let listed = list();
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        assert!(listed.contains(&std::process::id()));
        assert!(listed.contains(&child.id()));
    }
}
