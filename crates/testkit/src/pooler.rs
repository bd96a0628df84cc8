//! A real `PgBouncer` between a test and its `PostgreSQL` (`scripts/pooler` makes one ready).

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio_postgres::SimpleQueryMessage;

use crate::PATIENCE;
use crate::folder::TempDir;
use crate::postgres::{connected, on_own_runtime};
use crate::postgres_server::owner;

const POLL: Duration = Duration::from_millis(10);
/// The name of the database that tells about the pooler itself.
const CONSOLE: &str = "pgbouncer";

/// Who may come in, and go on to the server.
#[derive(Debug, Clone)]
pub struct PoolerUser {
    /// The name.
    pub name: String,
    /// The password, for the pooler and for the server.
    pub password: String,
}

/// A pooler of a test's own. Ended on drop.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    port: u16,
    user: PoolerUser,
    folder: TempDir,
}

impl Pooler {
    /// Starts one with these settings, on a free port of `127.0.0.1`.
    pub fn start(settings: &str, user: PoolerUser) -> Result<Self> {
        let folder = TempDir::create("pooler")?;
        // Nothing hands out a free port safely; this one was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = start(folder.path(), settings, port, &user)?;
        let mut pooler = Self {
            child,
            port,
            user,
            folder,
        };
        pooler.wait_until_it_listens()?;
        Ok(pooler)
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        let PoolerUser { name, password } = &self.user;
        format!(
            "postgres://{name}:{password}@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// How many connections to it are open for a database, by its own account.
    pub fn clients(&self, database: &str) -> Result<usize> {
        let (console, database) = (self.url(CONSOLE), database.to_owned());
        let shown = on_own_runtime(move || async move {
            connected(&console, async |client| {
                client.simple_query("SHOW POOLS").await
            })
            .await
        })?;
        let pool = shown.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) if row.get("database") == Some(&database) => Some(row),
            _ => None,
        });
        let pool = pool.context("it knows the database")?;
        let count =
            |name: &str| -> Result<usize> { Ok(pool.get(name).context("a column")?.parse()?) };
        Ok(count("cl_active")? + count("cl_waiting")?)
    }

    /// What it wrote into its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > until {
                bail!("PgBouncer does not listen: {}", self.log());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}

/// Of two settings of one name the later counts.
fn start(folder: &Path, settings: &str, port: u16, user: &PoolerUser) -> Result<Child> {
    let place = |name: &str| folder.join(name);
    let PoolerUser { name, password } = user;
    let users = place("users");
    fs::write(&users, format!("\"{name}\" \"{password}\"\n"))?;
    let own = format!(
        "listen_port = {port}\nunix_socket_dir =\nauth_file = {}\nstats_users = {name}\n",
        users.display()
    );
    fs::write(place("pgbouncer.ini"), format!("{settings}\n{own}"))?;
    // Whoever it runs as may not be let into the folder that it was built in.
    let program = place("pgbouncer");
    fs::copy(find()?, &program)?;
    let mut command = Command::new(program);
    command
        .arg(place("pgbouncer.ini"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(place("log"))?);
    // Like PostgreSQL it refuses to run as root.
    if let Some(owner) = owner() {
        let id = Command::new("id").args(["-u", owner]).output()?;
        let id = str::from_utf8(id.stdout.trim_ascii())?.parse()?;
        command.uid(id);
        let given = Command::new("chown")
            .arg("-R")
            .arg(owner)
            .arg(folder)
            .status()?;
        if !given.success() {
            bail!("chown: {given}");
        }
    }
    command.spawn().context("PgBouncer does not start")
}

/// The one that was built for the tests, else an installed one.
fn find() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = workspace.join(target).join("pgbouncer/pgbouncer");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
    std::iter::once(built)
        .chain(installed)
        .chain(["/usr/sbin/pgbouncer".into()])
        .find(|program| program.is_file())
        .context("no PgBouncer for this test; scripts/pooler makes one ready")
}
