//! A separate `PostgreSQL` server, for tests that break the server itself.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::TEST_TIMEOUT;
use crate::temp_dir::{TempDir, temp_dir};

/// Where Debian installs the server's programs, one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Accounts that can run the server if the tests run as root: it refuses to run as root.
const OWNERS: [&str; 2] = ["postgres", "nobody"];
const POLL: Duration = Duration::from_millis(100);
/// Everything else has the default value, including fsync.
const SETTINGS: &str = "max_connections = 60\nshared_buffers = '16MB'\nlisten_addresses = '127.0.0.1'\n\
    log_min_messages = warning\nwal_level = replica\nmax_wal_size = '64MB'\nmin_wal_size = '32MB'\n";

/// A server that a test can start, stop and break. On drop it is stopped and its data is removed.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: PathBuf,
    data: PathBuf,
    port: u16,
    folder: PathBuf,
    // Last, so that the data is removed after the server has stopped.
    _temp_dir: Option<TempDir>,
}

impl PostgresServer {
    /// Creates a server with extra settings and starts it.
    pub fn start(extra_settings: &str) -> Result<Self> {
        let folder = temp_dir("pg")?;
        Self::prepare(folder.path().to_owned(), Some(folder))?.initialize(extra_settings)
    }

    /// Like [`Self::start`], with its data in an existing folder, which is not removed.
    pub fn start_in(folder: &Path, extra_settings: &str) -> Result<Self> {
        Self::prepare(folder.to_owned(), None)?.initialize(extra_settings)
    }

    fn initialize(self, extra_settings: &str) -> Result<Self> {
        let data = self
            .data
            .to_str()
            .context("the path is not UTF-8")?
            .to_owned();
        let init = [
            "--pgdata",
            &data,
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ];
        check_success(&self.program("initdb", &init).output()?, "initdb")?;
        self.configure(extra_settings)?;
        self.resume()?;
        Ok(self)
    }

    /// Starts a standby of a running server, on this port or on a free one.
    pub fn start_standby(primary: &Self, port: Option<u16>) -> Result<Self> {
        let folder = temp_dir("pg-standby")?;
        let mut standby = Self::prepare(folder.path().to_owned(), Some(folder))?;
        standby.port = port.unwrap_or(standby.port);
        let (data, port) = (
            standby
                .data
                .to_str()
                .context("the path is not UTF-8")?
                .to_owned(),
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
        check_success(
            &standby.program("pg_basebackup", &copy).output()?,
            "pg_basebackup",
        )?;
        standby.configure("synchronous_standby_names = ''\n")?;
        standby.resume()?;
        Ok(standby)
    }

    /// The URL of a database. `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on `127.0.0.1`. It never changes.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts it after a stop. Retries, because after a kill the remaining processes may hold its shared memory for a
    /// moment.
    pub fn resume(&self) -> Result<()> {
        let until = Instant::now() + TEST_TIMEOUT;
        loop {
            let started = self.pg_ctl(&["start", "--wait", "--timeout=50", "--silent"])?;
            if started.status.success() {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("PostgreSQL does not start: {}", self.log());
            }
            thread::sleep(POLL);
        }
    }

    /// Stops it at once, without a checkpoint.
    pub fn stop_immediately(&self) -> Result<()> {
        check_success(
            &self.pg_ctl(&["stop", "--mode=immediate", "--wait", "--silent"])?,
            "pg_ctl stop",
        )
    }

    /// Sends SIGKILL to the postmaster. Its child processes end by themselves.
    pub fn kill9(&self) -> Result<()> {
        let pid = self.pid().context("the server does not run")?;
        send_signal("KILL", pid)?;
        let until = Instant::now() + TEST_TIMEOUT;
        while is_alive(pid) {
            if Instant::now() > until {
                bail!("the postmaster is still there");
            }
            thread::sleep(POLL / 10);
        }
        Ok(())
    }

    /// Promotes a standby to primary.
    pub fn promote(&self) -> Result<()> {
        check_success(
            &self.pg_ctl(&["promote", "--wait", "--silent"])?,
            "pg_ctl promote",
        )
    }

    /// Adds settings and reloads the running server.
    pub fn reconfigure(&self, settings: &str) -> Result<()> {
        self.configure(settings)?;
        check_success(&self.pg_ctl(&["reload", "--silent"])?, "pg_ctl reload")
    }

    /// Writes a file that only the server can read into its data folder.
    pub fn add_file(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.data.join(name);
        fs::write(&path, contents)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some(owner) = owner() {
            let path = path.to_str().context("the path is not UTF-8")?;
            let given = Command::new("chown").args([owner, path]).output()?;
            check_success(&given, "chown")?;
        }
        Ok(())
    }

    /// The process ID of the postmaster, if it runs.
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

    /// The content of its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn prepare(folder: PathBuf, temp_dir: Option<TempDir>) -> Result<Self> {
        let binaries = newest_binaries()?;
        // Another program could take the port before the server does; there is no safe way to reserve it.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self {
            data: folder.join("data"),
            folder,
            binaries,
            port,
            _temp_dir: temp_dir,
        };
        if let Some(owner) = owner() {
            let path = server.folder.to_str().context("the path is not UTF-8")?;
            check_success(
                &Command::new("chown").args([owner, path]).output()?,
                "chown",
            )?;
        }
        Ok(server)
    }

    /// Appends settings: later lines of the file win.
    fn configure(&self, settings: &str) -> Result<()> {
        let path = self.data.join("postgresql.conf");
        let before = fs::read_to_string(&path)?;
        let folder = self.folder.display();
        let own_settings = format!(
            "port = {}\nunix_socket_directories = '{folder}'\n{SETTINGS}",
            self.port
        );
        fs::write(&path, format!("{before}\n{own_settings}{settings}\n"))?;
        Ok(())
    }

    fn pg_ctl(&self, arguments: &[&str]) -> Result<Output> {
        let log = self.log_file();
        let paths = [
            "--pgdata",
            self.data.to_str().context("the path is not UTF-8")?,
            "--log",
            log.to_str().context("the path is not UTF-8")?,
        ];
        let is_start = arguments.first() == Some(&"start");
        let paths = if is_start { &paths[..] } else { &paths[..2] };
        let all = [arguments, paths].concat();
        // The server inherits the pipes of `pg_ctl start`, so reading them to their end would never finish.
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
        // A server that was killed leaves its PID file behind.
        if !self.pid().is_some_and(is_alive) {
            return;
        }
        if let Err(error) = self.stop_immediately() {
            eprintln!("a PostgreSQL server may still run: {error}");
        }
    }
}

/// The account that the server runs as, if the tests run as root.
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
    Ok(newest
        .context("no version of PostgreSQL is installed")?
        .join("bin"))
}

fn check_success(output: &Output, what: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    bail!("{what}: {}: {stderr}", output.status)
}

pub(crate) fn send_signal(name: &str, pid: u32) -> Result<()> {
    let command = format!("kill -{name} {pid}");
    check_success(
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
