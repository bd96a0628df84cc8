//! Disks that are full and disks that cannot make a write durable, under `SQLite` and under `PostgreSQL`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use testkit::{PostgresServer, TempDir};

use super::database::{VANISHING, three_on_server};
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::processes::STRICT;
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::shim::{Disk, Trouble};
use crate::faults::waiting::wait_until;

const NODES: usize = 3;
/// Between two faults, and how long a disk stays full.
const UP: Duration = Duration::from_secs(2);
const FULL: Duration = Duration::from_secs(3);
/// The file system of a server whose disk runs full.
const SMALL: &str = "size=320m,mode=0777";
const PIECE: usize = 1 << 20;

/// One node on a file.
fn one_on_sqlite(disk: Option<&Disk>) -> Cluster {
    Cluster::start(&Setup {
        nodes: 1,
        database: Database::Sqlite,
        equip: &|_, node| match disk {
            Some(disk) => disk.equip(node),
            None => node,
        },
    })
}

/// The disk of a `SQLite` file is full for a while. Nothing dies, so nothing is sent twice, and what was refused was rolled
/// back.
pub(super) fn full_under_sqlite(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let disk = Disk::new();
    let cluster = one_on_sqlite(Some(&disk));
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        disk.begin(Trouble::DiskIsFull);
        thread::sleep(dice.moment(FULL)); // tidy: so is the time that it lasts
        disk.end(Trouble::DiskIsFull);
    }
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}

/// A small file system of its own, filled by a file and freed again.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    fn mount(at: &Path) -> Result<Self, String> {
        let path = at.to_str().ok_or("a plain path")?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SMALL, "tmpfs", path])
            .output();
        let mounted = mounted.map_err(|error| error.to_string())?;
        if mounted.status.success() {
            return Ok(Self { at: at.to_owned() });
        }
        Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("there is room for a name");
        let piece = vec![0; PIECE];
        while filler.write_all(&piece).is_ok() {}
        while filler.write_all(&piece[..512]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("it was full");
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

/// The disk of `PostgreSQL` is full for a while: it refuses, or dies and comes back once there is room.
pub(super) fn full_under_postgres(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let folder = TempDir::create("small").expect("a temporary folder");
    let place = folder.path().to_owned();
    let disk = match SmallDisk::mount(&place) {
        Ok(disk) => disk,
        Err(error) => return Ran::Not(format!("no file system can be mounted: {error}")),
    };
    let server = match PostgresServer::start_in(&place, "") {
        Ok(server) => server,
        Err(error) => return Ran::Not(format!("no PostgreSQL of its own: {error:#}")),
    };
    let cluster = three_on_server(&server);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        disk.fill();
        thread::sleep(FULL + dice.moment(FULL)); // tidy: so is the time that it lasts
        disk.free();
        revive(&server);
        cluster.wait_for_answered(10);
        cluster.log.fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

/// A server that could not recover for want of room has ended for good: whoever frees the disk starts it.
fn revive(server: &PostgresServer) {
    let is_there = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    if !server.pid().is_some_and(is_there) {
        server.resume().expect("there is room again");
    }
}

/// Makes calls of processes fail that make writes durable.
struct Injection(Child);

impl Injection {
    fn begin(pids: &[u32]) -> Result<Self, String> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
        strace.args(["-e", "inject=fsync,fdatasync:error=EIO"]);
        for pid in pids {
            strace.args(["-p", &pid.to_string()]);
        }
        let child = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut injection = Self(child.map_err(|error| format!("no strace: {error}"))?);
        let attached = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let tracer = status
                .lines()
                .find_map(|line| line.strip_prefix("TracerPid:"));
            tracer.is_none_or(|tracer| tracer.trim() != "0")
        };
        let mut refused = false;
        wait_until("strace is attached or gives up", || {
            refused = injection.0.try_wait().is_ok_and(|ended| ended.is_some());
            refused || pids.iter().all(attached)
        });
        if refused {
            return Err("strace may not attach to a process here".to_owned());
        }
        Ok(injection)
    }
}

impl Drop for Injection {
    /// SIGTERM, on which strace lets go of the processes; it has ended by itself when all of them have.
    fn drop(&mut self) {
        let signal = format!("kill -TERM {} 2>/dev/null", self.0.id());
        let _gone_already = Command::new("sh").args(["-c", &signal]).status();
        if let Err(error) = self.0.wait() {
            eprintln!("strace: {error}");
        }
    }
}

/// A write of `SQLite`'s cannot be made durable: the service says so and ends, and a new one reads the truth back, which
/// may hold the write that failed.
pub(super) fn sync_fails_under_sqlite(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let mut cluster = one_on_sqlite(None);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        let injection = match Injection::begin(&[cluster.nodes[0].server.pid()]) {
            Ok(injection) => injection,
            Err(reason) => {
                callers.leave();
                return Ran::Not(reason);
            }
        };
        wait_until("the service ends by itself", || {
            !cluster.nodes[0].server.is_running()
        });
        drop(injection);
        let said = cluster.nodes[0].server.output();
        if !said.contains("could not make a write durable") {
            cluster
                .log
                .wrong(format!("it ended without saying why: {said}"));
        }
        cluster.close_door(0, from);
        cluster.restart(0);
    }
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

/// A write of `PostgreSQL`'s cannot be made durable: it panics and recovers from its log.
pub(super) fn sync_fails_under_postgres(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => return Ran::Not(format!("no PostgreSQL of its own: {error:#}")),
    };
    let cluster = three_on_server(&server);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        let panics = || server.log().matches("PANIC").count();
        let before = panics();
        // Not the postmaster: its children of tomorrow shall work.
        let injection = match Injection::begin(&server.pids()[1..]) {
            Ok(injection) => injection,
            Err(reason) => {
                callers.leave();
                return Ran::Not(reason);
            }
        };
        wait_until("PostgreSQL panics", || panics() > before);
        drop(injection);
        revive(&server);
        cluster.wait_for_answered(10);
        cluster.log.fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}
