//! One member: a Patroni and the `PostgreSQL` that it manages.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{chown_to_owner, find, first_value, on_loopback, parse, read};
use crate::http::Connection;
use crate::postgres_server::{is_alive, owner, send_signal};

/// A stopped process does not answer.
const API_TIMEOUT: Duration = Duration::from_secs(2);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of log lines that are shown when something fails.
const LOG_LINES: usize = 40;
const POLL: Duration = Duration::from_millis(20);
/// A standby that was killed repeats this line when it waits for a part of the WAL that its leader does not send.
const WAITS_FOR_WAL: &str = "Consistent recovery state has not been yet reached";
const WAITS_FOR_WAL_LINES: usize = 4;
/// Values in the configuration of docs/SCALING.md that are replaced for each member.
const NAME: &str = "name: member1";
const POSTGRES: &str = "10.0.0.1:5432";
const API: &str = "10.0.0.1:8008";
const ETCD: &str = "10.0.0.11:2379,10.0.0.12:2379,10.0.0.13:2379";
const NETWORK: &str = "10.0.0.0/24";
const DATA: &str = "/var/lib/postgresql/15/switchboard";
const BINARIES: &str = "/usr/lib/postgresql/15/bin";

/// The name, folders and ports of a member.
#[derive(Debug, Clone)]
pub(super) struct MemberSettings {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) postgres_port: u16,
    pub(super) api_port: u16,
    pub(super) etcd_port: u16,
    pub(super) binaries: PathBuf,
}

#[derive(Debug)]
pub(super) struct Member {
    settings: MemberSettings,
    child: Child,
}

impl MemberSettings {
    /// Replaces the values of the configuration with those of this member. Fails if one of them is missing.
    fn fill_in(&self, configuration: &str) -> Result<String> {
        let text = |path: &PathBuf| {
            let path = path.to_str().context("the path is not UTF-8")?;
            Ok::<_, anyhow::Error>(path.to_owned())
        };
        let mut filled = configuration.to_owned();
        for (example, value) in [
            (NAME, format!("name: {}", self.name)),
            (POSTGRES, on_loopback(self.postgres_port).to_string()),
            (API, on_loopback(self.api_port).to_string()),
            (ETCD, on_loopback(self.etcd_port).to_string()),
            (NETWORK, "127.0.0.1/32".to_owned()),
            (DATA, text(&self.data())?),
            (BINARIES, text(&self.binaries)?),
        ] {
            if !filled.contains(example) {
                bail!("the configuration does not contain {example}");
            }
            filled = filled.replace(example, &value);
        }
        // By default the socket and the password file are in system folders.
        let folder = text(&self.folder)?;
        Ok(filled.replace(
            "postgresql:\n  listen:",
            &format!("postgresql:\n  pgpass: {folder}/pgpass\n  parameters:\n    unix_socket_directories: {folder}\n  listen:"),
        ))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("patroni.yml")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Member {
    pub(super) fn start(settings: MemberSettings, configuration: &str) -> Result<Self> {
        fs::create_dir(&settings.folder)?;
        fs::write(settings.configuration(), settings.fill_in(configuration)?)?;
        chown_to_owner(&settings.folder)?;
        let child = start(&settings)?;
        Ok(Self { settings, child })
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    pub(super) fn api_address(&self) -> SocketAddr {
        on_loopback(self.settings.api_port)
    }

    pub(super) fn postgres_address(&self) -> String {
        on_loopback(self.settings.postgres_port).to_string()
    }

    /// The state of all members, as this member reports it.
    pub(super) fn show_cluster(&self) -> Option<Value> {
        let mut connection = Connection::open_within(self.api_address(), API_TIMEOUT).ok()?;
        let answer = connection.request("GET", "/cluster", &[], b"").ok()?;
        (answer.status == 200)
            .then(|| parse(&answer.text()))
            .flatten()
    }

    /// Returns an error if Patroni has ended by itself.
    pub(super) fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("Patroni ended with {status}: {}", self.log_tail()),
        }
    }

    /// The log of Patroni and `PostgreSQL`.
    pub(super) fn log(&self) -> String {
        let log = read(&self.settings.log());
        format!("--- {} ---\n{log}", self.settings.name)
    }

    /// The last lines of the log.
    fn log_tail(&self) -> String {
        let log = read(&self.settings.log());
        let lines: Vec<&str> = log.lines().collect();
        let newest = &lines[lines.len().saturating_sub(LOG_LINES)..];
        format!("--- {} ---\n{}", self.settings.name, newest.join("\n"))
    }

    /// Whether it cannot finish its recovery, by its log.
    pub(super) fn waits_for_wal(&self) -> bool {
        self.log_tail().matches(WAITS_FOR_WAL).count() >= WAITS_FOR_WAL_LINES
    }

    pub(super) fn restart(&mut self) -> Result<()> {
        self.child = start(&self.settings)?;
        Ok(())
    }

    /// Kills Patroni first, so that it does not restart `PostgreSQL`.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        signal_all("KILL", &self.postgres_pids())
    }

    /// Sends a signal to all processes of the member.
    pub(super) fn signal(&self, name: &str) -> Result<()> {
        send_signal(name, self.child.id())?;
        let Some(postmaster) = self.postmaster() else {
            return Ok(());
        };
        // The postmaster first, so that it starts no further children.
        send_signal(name, postmaster)?;
        signal_all(name, &self.postgres_pids())
    }

    /// Stops all processes, whatever their state.
    pub(super) fn shut_down(&mut self) {
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
        let Some(postmaster) = self.postmaster() else {
            return;
        };
        // SIGQUIT stops at once, without a checkpoint, and frees the shared memory.
        let ended = signal_all("CONT", &self.postgres_pids())
            .and_then(|()| signal_all("QUIT", &[postmaster]));
        if let Err(error) = ended {
            eprintln!("{}: {error}", self.settings.name);
        }
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        while is_alive(postmaster) {
            if Instant::now() > until {
                eprintln!("a PostgreSQL server may still run: {postmaster}");
                return;
            }
            thread::sleep(POLL);
        }
    }

    /// The postmaster, if it runs.
    fn postmaster(&self) -> Option<u32> {
        let file = read(&self.settings.data().join("postmaster.pid"));
        let pid = file.lines().next()?.trim().parse().ok()?;
        is_alive(pid).then_some(pid)
    }

    /// The postmaster and its children.
    fn postgres_pids(&self) -> Vec<u32> {
        let Some(pid) = self.postmaster() else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(pid).chain(children).collect()
    }
}

/// Sends a signal to processes. Some of them may already have ended.
fn signal_all(name: &str, pids: &[u32]) -> Result<()> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let command = format!("kill -{name} {} 2>/dev/null || true", pids.join(" "));
    let status = Command::new("sh").args(["-c", &command]).status()?;
    if !status.success() {
        bail!("`{command}` ended with {status}");
    }
    Ok(())
}

fn start(settings: &MemberSettings) -> Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(settings.log())?;
    let mut command = Command::new(find("patroni")?);
    command
        .arg(settings.configuration())
        .current_dir(&settings.folder)
        .env("HOME", &settings.folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    // PostgreSQL refuses to run as root.
    if let Some(owner) = owner() {
        let id = Command::new("id").args(["-u", owner]).output()?;
        command.uid(str::from_utf8(id.stdout.trim_ascii())?.parse()?);
    }
    command.spawn().context("Patroni does not start")
}

/// The `Authorization` header for requests that change something.
pub(super) fn basic_authorization(configuration: &str) -> Result<String> {
    let (_, api) = configuration
        .split_once("restapi:")
        .context("no REST API in the configuration")?;
    let (user, password) = (first_value(api, "username")?, first_value(api, "password")?);
    Ok(format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    ))
}
