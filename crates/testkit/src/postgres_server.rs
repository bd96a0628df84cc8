//! A `PostgreSQL` server of a test's own, for tests that break the server itself.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::PATIENCE;
use crate::folder::TempDir;

/// Where Debian keeps the server's programs, one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The account that a server of root's is run by, since it refuses to run as root.
const OWNERS: [&str; 2] = ["postgres", "nobody"];
const POLL: Duration = Duration::from_millis(100);
/// `PostgreSQL`'s defaults, fsync included, apart from this.
const SETTINGS: &str = "max_connections = 60\nshared_buffers = '16MB'\nlisten_addresses = '127.0.0.1'\n\
    log_min_messages = warning\nwal_level = replica\nmax_wal_size = '64MB'\nmin_wal_size = '32MB'\n";

/// A server that a test starts, stops and breaks as it likes. Ended on drop, and its data with it.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: PathBuf,
    data: PathBuf,
    port: u16,
    folder: PathBuf,
    // Last: the data goes when the server has gone.
    _own: Option<TempDir>,
}

impl PostgresServer {
    /// Makes a new server with these settings besides and starts it.
    pub fn start(more_settings: &str) -> Result<Self> {
        let own = TempDir::create("pg")?;
        Self::place(own.path().to_owned(), Some(own))?.begin(more_settings)
    }

    /// As [`Self::start`], with its data in this folder, which may be a file system of its own and stays.
    pub fn start_in(folder: &Path, more_settings: &str) -> Result<Self> {
        Self::place(folder.to_owned(), None)?.begin(more_settings)
    }

    fn begin(self, more_settings: &str) -> Result<Self> {
        let data = self.data.to_str().context("a plain path")?.to_owned();
        let init = [
            "--pgdata",
            &data,
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ];
        succeed(&self.program("initdb", &init).output()?, "initdb")?;
        self.configure(more_settings)?;
        self.resume()?;
        Ok(self)
    }

    /// A copy of a running server that follows it, on this port or on a free one.
    pub fn start_standby(primary: &Self, port: Option<u16>) -> Result<Self> {
        let own = TempDir::create("pg-standby")?;
        let mut standby = Self::place(own.path().to_owned(), Some(own))?;
        standby.port = port.unwrap_or(standby.port);
        let (data, port) = (
            standby.data.to_str().context("a plain path")?.to_owned(),
            primary.port.to_string(),
        );
        let copy = [
            "--pgdata",
            &data,
            "--host=127.0.0.1",
            "--port",
            &port,
            "--username=postgres",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-sync",
        ];
        succeed(
            &standby.program("pg_basebackup", &copy).output()?,
            "pg_basebackup",
        )?;
        standby.configure("synchronous_standby_names = ''\n")?;
        standby.resume()?;
        Ok(standby)
    }

    /// The URL of a database on it; `postgres` is there from the start.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on `127.0.0.1`, the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts it, again if that must be: after a kill, what is left of it may hold its memory for a moment.
    pub fn resume(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let started = self.control(&["start", "--wait", "--timeout=50", "--silent"])?;
            if started.status.success() {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("PostgreSQL does not start: {}", self.log());
            }
            thread::sleep(POLL);
        }
    }

    /// Ends it at once, without a last checkpoint.
    pub fn stop_hard(&self) -> Result<()> {
        succeed(
            &self.control(&["stop", "--mode=immediate", "--wait", "--silent"])?,
            "pg_ctl stop",
        )
    }

    /// SIGKILL to the postmaster; what it leaves behind ends by itself.
    pub fn kill9(&self) -> Result<()> {
        let pid = self.pid().context("it runs")?;
        send_signal("KILL", pid)?;
        let until = Instant::now() + PATIENCE;
        while is_alive(pid) {
            if Instant::now() > until {
                bail!("the postmaster is still there");
            }
            thread::sleep(POLL / 10);
        }
        Ok(())
    }

    /// Makes a standby the one that is written to.
    pub fn promote(&self) -> Result<()> {
        succeed(
            &self.control(&["promote", "--wait", "--silent"])?,
            "pg_ctl promote",
        )
    }

    /// Adds settings and lets the running server read them.
    pub fn reconfigure(&self, settings: &str) -> Result<()> {
        self.configure(settings)?;
        succeed(&self.control(&["reload", "--silent"])?, "pg_ctl reload")
    }

    /// Puts a file into its data folder, for nobody but the server to read; one of this name is replaced.
    pub fn add_file(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.data.join(name);
        fs::write(&path, contents)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some(owner) = owner() {
            let path = path.to_str().context("a plain path")?;
            let given = Command::new("chown").args([owner, path]).output()?;
            succeed(&given, "chown")?;
        }
        Ok(())
    }

    /// The postmaster's process ID, while there is one.
    pub fn pid(&self) -> Option<u32> {
        let file = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        file.lines().next()?.trim().parse().ok()
    }

    /// The postmaster and all its children.
    pub fn pids(&self) -> Vec<u32> {
        let Some(pid) = self.pid() else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(pid).chain(children).collect()
    }

    /// What it wrote into its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn place(folder: PathBuf, own: Option<TempDir>) -> Result<Self> {
        let binaries = newest_binaries()?;
        // Nothing hands out a free port safely; this one was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self {
            data: folder.join("data"),
            folder,
            binaries,
            port,
            _own: own,
        };
        if let Some(owner) = owner() {
            let path = server.folder.to_str().context("a plain path")?;
            succeed(
                &Command::new("chown").args([owner, path]).output()?,
                "chown",
            )?;
        }
        Ok(server)
    }

    /// Settings that stand later in the file win.
    fn configure(&self, settings: &str) -> Result<()> {
        let path = self.data.join("postgresql.conf");
        let before = fs::read_to_string(&path)?;
        let folder = self.folder.display();
        let own = format!(
            "port = {}\nunix_socket_directories = '{folder}'\n{SETTINGS}",
            self.port
        );
        fs::write(&path, format!("{before}\n{own}{settings}\n"))?;
        Ok(())
    }

    fn control(&self, arguments: &[&str]) -> Result<Output> {
        let log = self.log_file();
        let places = [
            "--pgdata",
            self.data.to_str().context("a plain path")?,
            "--log",
            log.to_str().context("a plain path")?,
        ];
        let is_start = arguments.first() == Some(&"start");
        let places = if is_start { &places[..] } else { &places[..2] };
        let all = [arguments, places].concat();
        // The server inherits the pipes of a command that starts it, so their end would never come.
        if is_start {
            let status = self
                .program("pg_ctl", &all)
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()?;
            return Ok(Output {
                status,
                stdout: Vec::new(),
                stderr: Vec::new(),
            });
        }
        Ok(self.program("pg_ctl", &all).output()?)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let path = self.binaries.join(name);
        let mut command = match owner() {
            Some(owner) => {
                let mut command = Command::new("runuser");
                command.args(["-u", owner, "--"]).arg(path);
                command
            }
            None => Command::new(path),
        };
        command.args(arguments).current_dir(&self.folder);
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that was killed has left its file behind.
        if !self.pid().is_some_and(is_alive) {
            return;
        }
        if let Err(error) = self.stop_hard() {
            eprintln!("a PostgreSQL server may still run: {error}");
        }
    }
}

/// Who the server runs as, when not as whoever runs the test.
pub(crate) fn owner() -> Option<&'static str> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return None;
    }
    let exists = |name: &&str| {
        let id = Command::new("id").arg(name).output();
        id.is_ok_and(|id| id.status.success())
    };
    OWNERS.into_iter().find(exists)
}

pub(crate) fn newest_binaries() -> Result<PathBuf> {
    let versions = fs::read_dir(VERSIONS).with_context(|| {
        format!("no PostgreSQL server in {VERSIONS}; install it: apt-get install postgresql")
    })?;
    let version = |path: &PathBuf| -> Option<u32> { path.file_name()?.to_str()?.parse().ok() };
    let newest = versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .max_by_key(version);
    Ok(newest.context("a version of PostgreSQL")?.join("bin"))
}

fn succeed(output: &Output, what: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("{what}: {}: {said}", output.status)
}

pub(crate) fn send_signal(name: &str, pid: u32) -> Result<()> {
    let command = format!("kill -{name} {pid}");
    succeed(
        &Command::new("sh").args(["-c", &command]).output()?,
        &command,
    )
}

pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit_once(") ")
            .is_some_and(|(_, state)| state.starts_with('Z'))
    })
}
