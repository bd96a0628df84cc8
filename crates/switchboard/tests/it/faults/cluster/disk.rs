//! Full disks and failed syncs, under `SQLite` and under `PostgreSQL`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use testkit::{PostgresServer, temp_dir};

use super::database::{ALLOW_UNKNOWN_COMMITS, three_nodes_on_server};
use super::nodes::WINDOW;
use super::processes::{STRICT, one_on_sqlite};
use super::scenario::ScenarioResult;
use crate::faults::faulty_disk::{DiskFault, FaultyDisk};
use crate::faults::rng::Rng;
use crate::faults::waiting::wait_until;

const NODES: usize = 3;
/// Limits of the random times between two faults, and for which a disk stays full.
const MAX_UPTIME: Duration = Duration::from_secs(2);
const FULL_FOR: Duration = Duration::from_secs(3);
/// A small file system for a server whose disk runs full.
const TMPFS_OPTIONS: &str = "size=320m,mode=0777";
const CHUNK: usize = 1 << 20;

/// The disk of a `SQLite` file is full for a while. No process dies, so nothing is sent twice, and refused requests are
/// rolled back.
pub(super) fn full_under_sqlite(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let disk = FaultyDisk::new();
    let cluster = one_on_sqlite(&|_, node| disk.configure(node));
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        disk.begin(DiskFault::DiskIsFull);
        thread::sleep(rng.duration_below(FULL_FOR)); // tidy: so is the time that it lasts
        disk.end(DiskFault::DiskIsFull);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// A small file system that a file can fill.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    fn mount(at: &Path) -> Result<Self, String> {
        let path = at.to_str().ok_or("a plain path")?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", TMPFS_OPTIONS, "tmpfs", path])
            .output();
        let mounted = mounted.map_err(|error| error.to_string())?;
        if mounted.status.success() {
            return Ok(Self { at: at.to_owned() });
        }
        Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
    }

    fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("the file can be created");
        let chunk = vec![0; CHUNK];
        while filler.write_all(&chunk).is_ok() {}
        while filler.write_all(&chunk[..512]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("the disk was full");
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.at).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.at.display());
        }
    }
}

/// The disk of `PostgreSQL` is full for a while: the server refuses writes, or dies and recovers once there is space.
pub(super) fn full_under_postgres(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let folder = temp_dir("small").expect("a temporary folder");
    let mount_point = folder.path().to_owned();
    let disk = match SmallDisk::mount(&mount_point) {
        Ok(disk) => disk,
        Err(error) => {
            return ScenarioResult::NotRun(format!("cannot mount a file system: {error}"));
        }
    };
    let server = match PostgresServer::start_in(&mount_point, "") {
        Ok(server) => server,
        Err(error) => {
            return ScenarioResult::NotRun(format!("cannot start a PostgreSQL server: {error:#}"));
        }
    };
    let cluster = three_nodes_on_server(&server);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        disk.fill();
        thread::sleep(FULL_FOR + rng.duration_below(FULL_FOR)); // tidy: so is the time that it lasts
        disk.free();
        restart_if_dead(&server);
        cluster.wait_for_answered(10);
        cluster.log.record_fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

/// A server that could not recover without disk space has ended, so it must be started.
fn restart_if_dead(server: &PostgresServer) {
    let is_there = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    if !server.pid().is_some_and(is_there) {
        server.resume().expect("there is space again");
    }
}

/// Lets `fsync` and `fdatasync` of processes fail, by strace.
struct SyncFailure(Child);

impl SyncFailure {
    fn begin(pids: &[u32]) -> Result<Self, String> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
        strace.args(["-e", "inject=fsync,fdatasync:error=EIO"]);
        for pid in pids {
            strace.args(["-p", &pid.to_string()]);
        }
        let child = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut sync_failure = Self(child.map_err(|error| format!("no strace: {error}"))?);
        let attached = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let tracer = status
                .lines()
                .find_map(|line| line.strip_prefix("TracerPid:"));
            tracer.is_none_or(|tracer| tracer.trim() != "0")
        };
        let mut refused = false;
        wait_until("strace is attached or gives up", || {
            refused = sync_failure.0.try_wait().is_ok_and(|ended| ended.is_some());
            refused || pids.iter().all(attached)
        });
        if refused {
            return Err("strace cannot attach to a process here".to_owned());
        }
        Ok(sync_failure)
    }
}

impl Drop for SyncFailure {
    /// SIGTERM detaches strace from the processes. It has already ended if all of them have.
    fn drop(&mut self) {
        let signal = format!("kill -TERM {} 2>/dev/null", self.0.id());
        let _gone_already = Command::new("sh").args(["-c", &signal]).status();
        if let Err(error) = self.0.wait() {
            eprintln!("strace: {error}");
        }
    }
}

/// A sync of `SQLite` fails: the service logs it and ends. The next start reads the file again, which may contain the
/// write that failed.
pub(super) fn sync_fails_under_sqlite(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let mut cluster = one_on_sqlite(&|_, node| node);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        let sync_failure = match SyncFailure::begin(&[cluster.nodes[0].server.pid()]) {
            Ok(sync_failure) => sync_failure,
            Err(reason) => {
                callers.stop();
                return ScenarioResult::NotRun(reason);
            }
        };
        wait_until("the service ends by itself", || {
            !cluster.nodes[0].server.is_running()
        });
        drop(sync_failure);
        let output = cluster.nodes[0].server.output();
        if !output.contains("could not make a write durable") {
            cluster
                .log
                .record_unexpected(format!("it ended without a reason: {output}"));
        }
        cluster.disconnect(0, from);
        cluster.restart(0);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

/// A sync of `PostgreSQL` fails: the server panics and recovers from its write-ahead log.
pub(super) fn sync_fails_under_postgres(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => {
            return ScenarioResult::NotRun(format!("cannot start a PostgreSQL server: {error:#}"));
        }
    };
    let cluster = three_nodes_on_server(&server);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        let panics = || server.log().matches("PANIC").count();
        let before = panics();
        // Not the postmaster: the processes that it starts later must work.
        let sync_failure = match SyncFailure::begin(&server.pids()[1..]) {
            Ok(sync_failure) => sync_failure,
            Err(reason) => {
                callers.stop();
                return ScenarioResult::NotRun(reason);
            }
        };
        wait_until("PostgreSQL panics", || panics() > before);
        drop(sync_failure);
        restart_if_dead(&server);
        cluster.wait_for_answered(10);
        cluster.log.record_fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}
