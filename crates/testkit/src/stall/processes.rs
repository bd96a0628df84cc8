//! What the kernel counts for the threads of a test: those of this process, its children, and `PostgreSQL`.

use std::collections::{HashMap, HashSet};
use std::process;
use std::time::Duration;
use std::{env, fs};

use super::account::Account;
use crate::postgres::POSTGRES_VARIABLE;

/// The list of processes is read once in so many readings.
const LIST_EVERY: usize = 8;
/// How many processes a message passes in turn: a node, the database, the test.
const PASSED: usize = 3;
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
    /// What was counted since the last reading. What cannot be read counts as nothing.
    pub(super) fn read(&mut self) -> Account {
        if self.readings.is_multiple_of(LIST_EVERY) {
            self.ids = list();
        }
        self.readings += 1;
        let (busy, stolen) = self.read_machine();
        Account {
            busy,
            stolen,
            ..self.read_threads()
        }
    }

    /// A thread counts from its second reading on.
    fn read_threads(&mut self) -> Account {
        let mut now = HashMap::with_capacity(self.threads.len());
        let mut account = Account::default();
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
                account.ran += Duration::from_nanos(counted.0.saturating_sub(before.0));
                account.waited += waited;
                longest_wait = longest_wait.max(waited);
            }
            longest_waits.push(longest_wait);
        }
        longest_waits.sort_unstable_by(|one, other| other.cmp(one));
        account.longest_waits = longest_waits.iter().take(PASSED).sum();
        self.threads = now;
        account
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

/// This process, the servers of the tests, and everything below them.
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
    // Children may stand before their parents in the list.
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

/// Servers of `PostgreSQL` are no children of the process that tests: they are known by their folder, which has the number
/// of the process in its name, or by their port.
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

/// `ran waited slices`.
fn read_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// `id (name) state parent …`; a name may hold spaces and brackets.
fn read_parent(stat: &str) -> Option<(&str, u32)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once(" (")?;
    Some((name, rest.split(' ').nth(1)?.parse().ok()?))
}

/// `cpu user nice system idle iowait irq softirq steal …`.
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
