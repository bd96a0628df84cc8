//! A highly available `PostgreSQL` for one test: three members under Patroni, with etcd, on loopback.
//!
//! `scripts/patroni` installs what it needs.

mod member;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::TEST_TIMEOUT;
use crate::http;
use crate::postgres_server::{newest_binaries, owner, send_signal};
use crate::temp_dir::{TempDir, temp_dir};
use member::{Member, MemberSettings, basic_authorization};

const MEMBERS: usize = 3;
const POLL: Duration = Duration::from_millis(200);
/// Members usually recover by themselves within this time.
const REPAIR_AFTER: Duration = Duration::from_mins(1);

/// The running members and their etcd. They are stopped on drop.
#[derive(Debug)]
pub struct Patroni {
    members: Vec<Member>,
    etcd: Child,
    password: String,
    api_authorization: String,
    // Last, so that the data is removed after the servers have stopped.
    folder: TempDir,
}

/// The current role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The member that accepts writes.
    Leader,
    /// The replica that every commit waits for.
    SyncStandby,
    /// Another replica.
    Replica,
}

impl Patroni {
    /// Starts three members. `configuration` is that of the first member; addresses, names and folders are replaced in
    /// it. Returns once all members are in sync.
    pub fn start(configuration: &str) -> Result<Self> {
        let folder = temp_dir("patroni")?;
        let ports = free_ports(2 + 2 * MEMBERS)?;
        let (etcd_port, peer_port) = (ports[0], ports[1]);
        let etcd = start_etcd(folder.path(), etcd_port, peer_port)?;
        let mut patroni = Self {
            members: Vec::new(),
            etcd,
            password: superuser_password(configuration)?,
            api_authorization: basic_authorization(configuration)?,
            folder,
        };
        for index in 0..MEMBERS {
            let settings = MemberSettings {
                name: format!("member{}", index + 1),
                folder: patroni.folder.path().join(format!("member{}", index + 1)),
                postgres_port: ports[2 + 2 * index],
                api_port: ports[3 + 2 * index],
                etcd_port,
                binaries: newest_binaries()?,
            };
            patroni
                .members
                .push(Member::start(settings, configuration)?);
        }
        patroni.wait_until_in_sync()?;
        Ok(patroni)
    }

    /// A URL with all members. Clients connect to the one that accepts writes.
    pub fn url(&self, database: &str) -> String {
        let hosts = self.members.iter().map(Member::postgres_address);
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let password = &self.password;
        format!("postgres://postgres:{password}@{hosts}/{database}?target_session_attrs=read-write")
    }

    /// The role of each member, as reported by the first member that answers; `None` for a member that does not run.
    pub fn roles(&self) -> Result<Vec<Option<Role>>> {
        let shown = self.members.iter().find_map(Member::show_cluster);
        let shown = shown.context("no member answers")?;
        let members = shown["members"].as_array().context("no list of members")?;
        let role = |member: &Member| {
            let found = members.iter().find(|one| one["name"] == member.name())?;
            match (found["role"].as_str()?, found["state"].as_str()?) {
                ("leader", "running") => Some(Role::Leader),
                ("sync_standby", "running" | "streaming") => Some(Role::SyncStandby),
                ("replica", "running" | "streaming") => Some(Role::Replica),
                _ => None,
            }
        };
        Ok(self.members.iter().map(role).collect())
    }

    /// The index of the leader, if there is one.
    pub fn leader(&self) -> Option<usize> {
        let roles = self.roles().ok()?;
        roles.iter().position(|role| *role == Some(Role::Leader))
    }

    /// Waits until there is a leader, and returns its index.
    pub fn wait_for_leader(&self) -> Result<usize> {
        let start = Instant::now();
        loop {
            if let Some(leader) = self.leader() {
                return Ok(leader);
            }
            if start.elapsed() > TEST_TIMEOUT {
                bail!("no leader: {:?}\n{}", self.roles(), self.logs());
            }
            thread::sleep(POLL);
        }
    }

    /// Whether all members run, one as the leader and one as its synchronous standby.
    pub fn is_in_sync(&self) -> bool {
        self.roles().is_ok_and(|roles| {
            let has = |role| roles.contains(&Some(role));
            has(Role::Leader) && has(Role::SyncStandby) && roles.iter().all(Option::is_some)
        })
    }

    /// Waits until [`Self::is_in_sync`]. A member that cannot finish its recovery copies the leader's data again, as an
    /// operator would do it: once, because that takes its time.
    pub fn wait_until_in_sync(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut is_repaired = false;
        while !self.is_in_sync() {
            if !is_repaired
                && start.elapsed() > REPAIR_AFTER
                && let Some(index) = self.members.iter().position(Member::waits_for_wal)
            {
                self.reinitialize(index)?;
                is_repaired = true;
            }
            for member in &mut self.members {
                member.check_running()?;
            }
            if start.elapsed() > TEST_TIMEOUT {
                bail!(
                    "the members are not in sync: {:?}\n{}",
                    self.roles(),
                    self.logs()
                );
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Replaces the member's data with a copy of the leader's, like `patronictl reinit`.
    fn reinitialize(&self, index: usize) -> Result<()> {
        let member = &self.members[index];
        println!(
            "{} does not finish its recovery; it copies the leader's data again",
            member.name()
        );
        self.call_api(index, "POST", "/reinitialize", &json!({"force": true}))
    }

    /// The logs of all members.
    pub fn logs(&self) -> String {
        let logs: Vec<String> = self.members.iter().map(Member::log).collect();
        logs.join("\n")
    }

    /// Sends SIGKILL to Patroni and `PostgreSQL` of a member, as if its machine had failed.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        self.members[index].kill()
    }

    /// Starts a member that was killed.
    pub fn restart(&mut self, index: usize) -> Result<()> {
        self.members[index].restart()
    }

    /// Sends SIGSTOP to Patroni and all `PostgreSQL` processes of a member.
    pub fn freeze(&self, index: usize) -> Result<()> {
        self.members[index].signal("STOP")
    }

    /// Sends SIGCONT to the same processes.
    pub fn thaw(&self, index: usize) -> Result<()> {
        self.members[index].signal("CONT")
    }

    /// Sends SIGSTOP to etcd.
    pub fn freeze_etcd(&self) -> Result<()> {
        send_signal("STOP", self.etcd.id())
    }

    /// Sends SIGCONT to etcd.
    pub fn thaw_etcd(&self) -> Result<()> {
        send_signal("CONT", self.etcd.id())
    }

    /// Makes the synchronous standby the leader (a planned switchover). Patroni gives up after a while, and refuses while
    /// a member does not answer quickly; then it is asked again, as an operator would do it.
    pub fn switch_over(&mut self) -> Result<()> {
        let start = Instant::now();
        let before = self.wait_for_leader()?;
        while self.wait_for_leader()? == before {
            self.wait_until_in_sync()?;
            if let Err(error) = self.try_to_switch_over(before) {
                println!("no switchover: {error:#}");
                if start.elapsed() > TEST_TIMEOUT {
                    return Err(error);
                }
                thread::sleep(POLL);
            }
        }
        Ok(())
    }

    fn try_to_switch_over(&self, leader: usize) -> Result<()> {
        let roles = self.roles()?;
        let candidate = roles
            .iter()
            .position(|role| *role == Some(Role::SyncStandby));
        let candidate = candidate.context("no synchronous standby")?;
        let names = json!({
            "leader": self.members[leader].name(),
            "candidate": self.members[candidate].name(),
        });
        self.call_api(leader, "POST", "/switchover", &names)
    }

    /// Calls the REST API of a member's Patroni.
    fn call_api(&self, index: usize, method: &str, path: &str, body: &Value) -> Result<()> {
        let headers = [
            ("Authorization", self.api_authorization.as_str()),
            ("Content-Type", "application/json"),
        ];
        let api = self.members[index].api_address();
        let answer = http::request(api, method, path, &headers, body.to_string().as_bytes())?;
        if answer.status != 200 {
            bail!("{method} {path}: {} {}", answer.status, answer.text());
        }
        Ok(())
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.shut_down();
        }
        // Errors mean that it has already ended.
        let _already_gone = self.etcd.kill();
        let _already_waited = self.etcd.wait();
    }
}

fn start_etcd(folder: &Path, port: u16, peer_port: u16) -> Result<Child> {
    let (clients, peers) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer_port}"),
    );
    let child = Command::new(find("etcd")?)
        .arg("--enable-v2=true")
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args([
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
        ])
        .args([
            "--listen-peer-urls",
            &peers,
            "--initial-advertise-peer-urls",
            &peers,
        ])
        .args(["--initial-cluster", &format!("default={peers}")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(folder.join("etcd.log"))?)
        .spawn()
        .context("etcd does not start")?;
    Ok(child)
}

/// Finds a program in `PATH`.
fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .with_context(|| format!("{name} is not installed; scripts/patroni installs it"))
}

/// Different free ports. Another program could take one before it is used; there is no safe way to reserve them.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    listeners.iter().map(port).collect()
}

/// The first value of a key in the configuration.
fn first_value(configuration: &str, key: &str) -> Result<String> {
    let start = format!("{key}:");
    let mut lines = configuration.lines().map(str::trim);
    let value = lines.find_map(|line| line.strip_prefix(&start));
    Ok(value
        .with_context(|| format!("{key} is not set"))?
        .trim()
        .to_owned())
}

fn superuser_password(configuration: &str) -> Result<String> {
    let (_, superuser) = configuration
        .split_once("superuser:")
        .context("no superuser in the configuration")?;
    first_value(superuser, "password")
}

/// Changes the owner of a folder to the account that the servers run as.
fn chown_to_owner(folder: &Path) -> Result<()> {
    if let Some(owner) = owner() {
        let given = Command::new("chown")
            .args(["-R", owner])
            .arg(folder)
            .status()?;
        if !given.success() {
            bail!("chown: {given}");
        }
    }
    Ok(())
}

fn on_loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}
