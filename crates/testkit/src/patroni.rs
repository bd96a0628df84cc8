//! A highly available `PostgreSQL` of a test's own: three members under Patroni, with etcd, on loopback.
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

use crate::PATIENCE;
use crate::folder::TempDir;
use crate::http;
use crate::postgres_server::{newest_binaries, owner, send_signal};
use member::{Member, Places, Repair, basic_authorization};

/// How many members there are.
const MEMBERS: usize = 3;
const POLL: Duration = Duration::from_millis(200);
/// Members recover by themselves within this time, unless they need a repair. The same time passes before the next one.
const REPAIRED_AFTER: Duration = Duration::from_mins(1);

/// The running members and their etcd. Ended on drop.
#[derive(Debug)]
pub struct Patroni {
    members: Vec<Member>,
    etcd: Child,
    password: String,
    api_authorization: String,
    // Last: the data goes when the servers have gone.
    folder: TempDir,
}

/// What a member is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is written to.
    Leader,
    /// Every commit waits for it.
    SyncStandby,
    /// Another replica.
    Replica,
}

impl Patroni {
    /// Starts three members with this configuration of the first, in which addresses, names and folders are replaced.
    /// Returns once all are in step.
    pub fn start(configuration: &str) -> Result<Self> {
        let folder = TempDir::create("patroni")?;
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
            let places = Places {
                name: format!("member{}", index + 1),
                folder: patroni.folder.path().join(format!("member{}", index + 1)),
                postgres_port: ports[2 + 2 * index],
                api_port: ports[3 + 2 * index],
                etcd_port,
                binaries: newest_binaries()?,
            };
            patroni.members.push(Member::start(places, configuration)?);
        }
        patroni.wait_until_in_step()?;
        Ok(patroni)
    }

    /// A URL that names all members and takes the one that can be written to.
    pub fn url(&self, database: &str) -> String {
        let hosts = self.members.iter().map(Member::postgres_address);
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let password = &self.password;
        format!("postgres://postgres:{password}@{hosts}/{database}?target_session_attrs=read-write")
    }

    /// What each member is, by the account of the first that answers; `None` for one that does not run.
    pub fn roles(&self) -> Result<Vec<Option<Role>>> {
        let shown = self.members.iter().find_map(Member::show_cluster);
        let shown = shown.context("no member answers")?;
        let members = shown["members"].as_array().context("a list of members")?;
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

    /// The member that can be written to, if there is one.
    pub fn leader(&self) -> Option<usize> {
        let roles = self.roles().ok()?;
        roles.iter().position(|role| *role == Some(Role::Leader))
    }

    /// Whether every member runs, one of them as the leader and one as its synchronous standby.
    pub fn is_in_step(&self) -> bool {
        self.roles().is_ok_and(|roles| {
            let has = |role| roles.contains(&Some(role));
            has(Role::Leader) && has(Role::SyncStandby) && roles.iter().all(Option::is_some)
        })
    }

    /// Waits until [`Self::is_in_step`]. A member that cannot recover by itself is repaired, as an operator would.
    pub fn wait_until_in_step(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut last_repair = Instant::now();
        let mut has_restarted_patroni = false;
        while !self.is_in_step() {
            if last_repair.elapsed() > REPAIRED_AFTER
                && let Some((index, repair)) = self.needed_repair()
            {
                last_repair = Instant::now();
                match repair {
                    Repair::RestartPatroni if has_restarted_patroni => {
                        self.reset_synchronous_mode(index)?;
                    }
                    Repair::RestartPatroni => {
                        has_restarted_patroni = true;
                        self.restart_patroni(index)?;
                    }
                    Repair::NewCopy => self.copy_again(index)?,
                }
            }
            for member in &mut self.members {
                member.check_running()?;
            }
            if Instant::now() > until {
                let logs: Vec<String> = self.members.iter().map(Member::newest_log).collect();
                bail!(
                    "the members are not in step: {:?}\n{}",
                    self.roles(),
                    logs.join("\n")
                );
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The first member that needs a repair, and which.
    fn needed_repair(&self) -> Option<(usize, Repair)> {
        let mut members = self.members.iter().enumerate();
        members.find_map(|(index, member)| Some((index, member.needed_repair()?)))
    }

    /// `PostgreSQL` runs on.
    fn restart_patroni(&mut self, index: usize) -> Result<()> {
        let member = &mut self.members[index];
        println!(
            "{} appoints no synchronous standby; its Patroni is restarted",
            member.name()
        );
        member.restart_patroni()
    }

    /// The member's data is deleted and copied from the leader, as by `patronictl reinit`.
    fn copy_again(&self, index: usize) -> Result<()> {
        let member = &self.members[index];
        println!(
            "{} does not finish its recovery; it copies the leader's data again",
            member.name()
        );
        self.call_api(index, "POST", "/reinitialize", &json!({"force": true}))
    }

    /// Turns synchronous mode off and on, which removes a key in etcd that names a former leader.
    fn reset_synchronous_mode(&self, index: usize) -> Result<()> {
        let member = &self.members[index];
        println!(
            "{} still appoints no synchronous standby; synchronous mode is turned off and on",
            member.name()
        );
        self.call_api(
            index,
            "PATCH",
            "/config",
            &json!({"synchronous_mode": false}),
        )?;
        let until = Instant::now() + REPAIRED_AFTER;
        while !member.has_disabled_synchronous_mode() {
            if Instant::now() > until {
                bail!("synchronous mode stays on: {}", member.newest_log());
            }
            thread::sleep(POLL);
        }
        self.call_api(
            index,
            "PATCH",
            "/config",
            &json!({"synchronous_mode": true}),
        )
    }

    /// SIGKILL to a member, Patroni and `PostgreSQL`, as if its machine had gone.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        self.members[index].kill()
    }

    /// Starts a member again that was killed.
    pub fn restart(&mut self, index: usize) -> Result<()> {
        self.members[index].restart()
    }

    /// SIGSTOP to a member, Patroni and all processes of `PostgreSQL`.
    pub fn freeze(&self, index: usize) -> Result<()> {
        self.members[index].signal("STOP")
    }

    /// SIGCONT to the same.
    pub fn thaw(&self, index: usize) -> Result<()> {
        self.members[index].signal("CONT")
    }

    /// Nobody gets an answer of etcd from now on.
    pub fn freeze_etcd(&self) -> Result<()> {
        send_signal("STOP", self.etcd.id())
    }

    /// etcd answers again.
    pub fn thaw_etcd(&self) -> Result<()> {
        send_signal("CONT", self.etcd.id())
    }

    /// Makes the synchronous standby the leader, in an orderly way.
    pub fn switch_over(&self) -> Result<()> {
        let roles = self.roles()?;
        let find = |role| roles.iter().position(|found| *found == Some(role));
        let leader = find(Role::Leader).context("a leader")?;
        let candidate = find(Role::SyncStandby).context("a synchronous standby")?;
        let names = json!({
            "leader": self.members[leader].name(),
            "candidate": self.members[candidate].name(),
        });
        self.call_api(leader, "POST", "/switchover", &names)
    }

    /// A request that changes something, to the API of a member's Patroni.
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
            member.end();
        }
        // Both fail only when it is gone already.
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

/// A program of one of the packages.
fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .with_context(|| format!("{name} is not installed; scripts/patroni installs it"))
}

/// All at once, so that they differ. Nothing hands out free ports safely; these were free a moment ago.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    listeners.iter().map(port).collect()
}

/// The first value of a key in the configuration.
fn value_of(configuration: &str, key: &str) -> Result<String> {
    let start = format!("{key}:");
    let mut lines = configuration.lines().map(str::trim);
    let value = lines.find_map(|line| line.strip_prefix(&start));
    Ok(value
        .with_context(|| format!("{key} is set"))?
        .trim()
        .to_owned())
}

fn superuser_password(configuration: &str) -> Result<String> {
    let (_, superuser) = configuration
        .split_once("superuser:")
        .context("a superuser")?;
    value_of(superuser, "password")
}

/// Gives a folder to the account that the servers run as.
fn give_to_owner(folder: &Path) -> Result<()> {
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
