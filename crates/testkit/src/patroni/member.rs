//! One member: a Patroni and the `PostgreSQL` that it looks after.

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

use super::{find, give_to_owner, on_loopback, parse, read, value_of};
use crate::http::Connection;
use crate::postgres_server::{is_alive, owner, send_signal};

/// A frozen member answers nothing.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// After this an ending server is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// So many lines of a log are shown when something fails.
const LOG_LINES: usize = 40;
const POLL: Duration = Duration::from_millis(20);
/// A leader that goes on writing this works with an old copy of a key in etcd and never appoints a synchronous standby: a
/// fault of Patroni before 3.1, on machines where it did not get to run for a while.
const STUCK: &str = "Synchronous replication key updated by someone else";
/// It writes it every five seconds.
const STUCK_LINES: usize = 6;
/// What the leader writes once after synchronous mode was turned off.
const DISABLED: &str = "Disabled synchronous replication";
/// A standby that was killed goes on writing this when it waits for a part of the log that its leader does not send.
const WAITS_FOR_LOG: &str = "Consistent recovery state has not been yet reached";
const WAITS_FOR_LOG_LINES: usize = 4;
/// What stands in the configuration of docs/SCALING.md for the places of a member.
const NAME: &str = "name: member1";
const POSTGRES: &str = "10.0.0.1:5432";
const API: &str = "10.0.0.1:8008";
const ETCD: &str = "10.0.0.11:2379,10.0.0.12:2379,10.0.0.13:2379";
const NETWORK: &str = "10.0.0.0/24";
const DATA: &str = "/var/lib/postgresql/15/switchboard";
const BINARIES: &str = "/usr/lib/postgresql/15/bin";

/// What an operator does for a member that cannot recover by itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Repair {
    RestartPatroni,
    NewCopy,
}

/// Where a member is.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) postgres_port: u16,
    pub(super) api_port: u16,
    pub(super) etcd_port: u16,
    pub(super) binaries: PathBuf,
}

#[derive(Debug)]
pub(super) struct Member {
    places: Places,
    child: Child,
}

impl Places {
    /// The configuration with the places of this member. Each must stand in it.
    fn fill_in(&self, configuration: &str) -> Result<String> {
        let plain = |path: &PathBuf| {
            Ok::<_, anyhow::Error>(path.to_str().context("a plain path")?.to_owned())
        };
        let mut filled = configuration.to_owned();
        for (example, value) in [
            (NAME, format!("name: {}", self.name)),
            (POSTGRES, on_loopback(self.postgres_port).to_string()),
            (API, on_loopback(self.api_port).to_string()),
            (ETCD, on_loopback(self.etcd_port).to_string()),
            (NETWORK, "127.0.0.1/32".to_owned()),
            (DATA, plain(&self.data())?),
            (BINARIES, plain(&self.binaries)?),
        ] {
            if !filled.contains(example) {
                bail!("the configuration does not hold {example}");
            }
            filled = filled.replace(example, &value);
        }
        // The default for the socket and the passwords is a folder of the system's.
        let folder = plain(&self.folder)?;
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
    pub(super) fn start(places: Places, configuration: &str) -> Result<Self> {
        fs::create_dir(&places.folder)?;
        fs::write(places.configuration(), places.fill_in(configuration)?)?;
        give_to_owner(&places.folder)?;
        let child = start(&places)?;
        Ok(Self { places, child })
    }

    pub(super) fn name(&self) -> &str {
        &self.places.name
    }

    pub(super) fn api_address(&self) -> SocketAddr {
        on_loopback(self.places.api_port)
    }

    pub(super) fn postgres_address(&self) -> String {
        on_loopback(self.places.postgres_port).to_string()
    }

    /// What it says of all members.
    pub(super) fn show_cluster(&self) -> Option<Value> {
        let mut connection = Connection::open(self.api_address()).ok()?;
        connection.set_deadline(ANSWERS_WITHIN);
        let answer = connection.request("GET", "/cluster", &[], b"").ok()?;
        (answer.status == 200)
            .then(|| parse(&answer.text()))
            .flatten()
    }

    /// An error when Patroni has ended by itself.
    pub(super) fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("Patroni ended with {status}: {}", self.newest_log()),
        }
    }

    /// The end of what Patroni and `PostgreSQL` wrote into their log.
    pub(super) fn newest_log(&self) -> String {
        let log = read(&self.places.log());
        let lines: Vec<&str> = log.lines().collect();
        let newest = &lines[lines.len().saturating_sub(LOG_LINES)..];
        format!("--- {} ---\n{}", self.places.name, newest.join("\n"))
    }

    /// The repair without which it stays as it is, by its log.
    pub(super) fn needed_repair(&self) -> Option<Repair> {
        let log = self.newest_log();
        if log.matches(STUCK).count() >= STUCK_LINES {
            Some(Repair::RestartPatroni)
        } else if log.matches(WAITS_FOR_LOG).count() >= WAITS_FOR_LOG_LINES {
            Some(Repair::NewCopy)
        } else {
            None
        }
    }

    /// Whether the leader has turned synchronous mode off lately.
    pub(super) fn has_disabled_synchronous_mode(&self) -> bool {
        self.newest_log().contains(DISABLED)
    }

    /// Starts Patroni again; `PostgreSQL` runs on.
    pub(super) fn restart_patroni(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.restart()
    }

    pub(super) fn restart(&mut self) -> Result<()> {
        self.child = start(&self.places)?;
        Ok(())
    }

    /// Patroni first, so that it does not start `PostgreSQL` again.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        signal_all("KILL", &self.postgres_pids())
    }

    /// A signal to all processes of the member.
    pub(super) fn signal(&self, name: &str) -> Result<()> {
        send_signal(name, self.child.id())?;
        let Some(postmaster) = self.postmaster() else {
            return Ok(());
        };
        // The postmaster first: when it is stopped, no child is added.
        send_signal(name, postmaster)?;
        signal_all(name, &self.postgres_pids())
    }

    /// Ends everything, however it stands.
    pub(super) fn end(&mut self) {
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
        let Some(postmaster) = self.postmaster() else {
            return;
        };
        // SIGQUIT: at once, without a last checkpoint; its shared memory is freed.
        let ended = signal_all("CONT", &self.postgres_pids())
            .and_then(|()| signal_all("QUIT", &[postmaster]));
        if let Err(error) = ended {
            eprintln!("{}: {error}", self.places.name);
        }
        let until = Instant::now() + ENDS_WITHIN;
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
        let file = read(&self.places.data().join("postmaster.pid"));
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

/// A signal to processes, some of which may have ended by now.
fn signal_all(name: &str, pids: &[u32]) -> Result<()> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let command = format!("kill -{name} {} 2>/dev/null || true", pids.join(" "));
    let status = Command::new("sh").args(["-c", &command]).status()?;
    if !status.success() {
        bail!("`{command}` ended with {status}");
    }
    Ok(())
}

fn start(places: &Places) -> Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(places.log())?;
    let mut command = Command::new(find("patroni")?);
    command
        .arg(places.configuration())
        .current_dir(&places.folder)
        .env("HOME", &places.folder)
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

/// The header that the API asks for where something is changed.
pub(super) fn basic_authorization(configuration: &str) -> Result<String> {
    let (_, api) = configuration.split_once("restapi:").context("an API")?;
    let (user, password) = (value_of(api, "username")?, value_of(api, "password")?);
    Ok(format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    ))
}
