//! A real `PgBouncer` between a test and its `PostgreSQL`. `scripts/pooler` builds it.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio_postgres::SimpleQueryMessage;

use crate::TEST_TIMEOUT;
use crate::postgres::{connected, on_own_runtime};
use crate::postgres_server::owner;
use crate::temp_dir::{TempDir, temp_dir};

const POLL: Duration = Duration::from_millis(10);
/// The name of the admin console database.
const CONSOLE: &str = "pgbouncer";

/// The account that clients use, at the pooler and at the server.
#[derive(Debug, Clone)]
pub struct PoolerUser {
    /// The name.
    pub name: String,
    /// The password, for the pooler and for the server.
    pub password: String,
}

/// A running pooler. It is killed on drop.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    port: u16,
    user: PoolerUser,
    folder: TempDir,
}

impl Pooler {
    /// Starts it with these settings on a free port of `127.0.0.1`.
    pub fn start(settings: &str, user: PoolerUser) -> Result<Self> {
        let folder = temp_dir("pooler")?;
        // Another program could take the port before the pooler does; there is no safe way to reserve it.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = start(folder.path(), settings, port, &user)?;
        let mut pooler = Self {
            child,
            port,
            user,
            folder,
        };
        pooler.wait_until_listening()?;
        Ok(pooler)
    }

    /// The URL of a database behind the pooler.
    pub fn url(&self, database: &str) -> String {
        let PoolerUser { name, password } = &self.user;
        format!(
            "postgres://{name}:{password}@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// The number of client connections for a database, as the pooler reports it.
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
        let pool = pool.context("the pooler has no pool for the database")?;
        let count = |name: &str| -> Result<usize> {
            Ok(pool.get(name).context("a column is missing")?.parse()?)
        };
        Ok(count("cl_active")? + count("cl_waiting")?)
    }

    /// The content of its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn wait_until_listening(&mut self) -> Result<()> {
        let until = Instant::now() + TEST_TIMEOUT;
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
        // Errors mean that it has already ended.
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}

/// Appends our own settings: if a setting occurs twice, the later one counts.
fn start(folder: &Path, settings: &str, port: u16, user: &PoolerUser) -> Result<Child> {
    let file = |name: &str| folder.join(name);
    let PoolerUser { name, password } = user;
    let users = file("users");
    fs::write(&users, format!("\"{name}\" \"{password}\"\n"))?;
    let own = format!(
        "listen_port = {port}\nunix_socket_dir =\nauth_file = {}\nstats_users = {name}\n",
        users.display()
    );
    fs::write(file("pgbouncer.ini"), format!("{settings}\n{own}"))?;
    // The account that it runs as may not have access to the folder in which it was built.
    let program = file("pgbouncer");
    fs::copy(find()?, &program)?;
    let mut command = Command::new(program);
    command
        .arg(file("pgbouncer.ini"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(file("log"))?);
    // Like PostgreSQL, it refuses to run as root.
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

/// The program that was built for the tests, or an installed one.
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
        .context("no PgBouncer for this test; scripts/pooler builds it")
}
