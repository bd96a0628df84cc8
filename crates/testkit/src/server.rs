//! The binary under test, with its own data folder and, if requested, its own `PostgreSQL` database.

use crate::postgres::TestDatabase;
use crate::process::Process;
use crate::temp_dir::{TempDir, temp_dir};
use anyhow::{Context, Result};
use serde_json::Value;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::{env, fs};

/// Every setting of the service can be set by a variable with this prefix.
const VARIABLE_PREFIX: &str = "SWITCHBOARD_";
const DATABASE_VARIABLE: &str = "SWITCHBOARD_DATABASE__URL";
/// The service key of all tests. Nodes that share a database need the same key.
pub const SERVICE_KEY: &str = "dGhlIGtleSBvZiBhbGwgdGVzdHMsIDMyIGJ5dGVzISE=";

/// The database that the server uses. A black-box test runs once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The default: a file in the data folder.
    Sqlite,
    /// A new database on the `PostgreSQL` server of the tests.
    Postgres,
}

impl Backend {
    /// Both backends.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

/// The variable that allows callbacks to private networks.
pub const CALLBACKS_ALLOW: &str = "SWITCHBOARD_CALLBACKS__ALLOW";
const LOOPBACK: &str = r#"["127.0.0.0/8", "::1/128"]"#;

/// The settings of a server.
#[derive(Debug)]
pub struct ServerBuilder {
    binary: PathBuf,
    backend: Backend,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    config: Option<String>,
    has_key: bool,
}

impl ServerBuilder {
    /// Writes no key into the data folder, so the service has to create one.
    #[must_use]
    pub fn without_key(mut self) -> Self {
        self.has_key = false;
        self
    }

    /// Adds an argument to `serve`.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable for `serve` and for [`Server::cli`].
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Removes a variable that is set by default, such as [`CALLBACKS_ALLOW`].
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self
    }

    /// Sets the content of the configuration file, which is passed with `--config`.
    #[must_use]
    pub fn config(mut self, toml: impl Into<String>) -> Self {
        self.config = Some(toml.into());
        self
    }

    /// Starts the server; panics with its output if it does not start.
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Creates the tables in an empty database, as the first start of the service does.
    fn migrate(&self, url: &str) {
        let home = temp_dir("migration").expect("a temporary folder");
        let output = Command::new(&self.binary)
            .args(["account", "list", "--json"])
            .current_dir(home.path())
            .env("SWITCHBOARD_DATABASE__URL", url)
            .output();
        let output = output.expect("the service runs");
        assert!(output.status.success(), "{output:?}");
    }

    /// Starts the server. The error contains its output.
    pub fn try_start(self) -> Result<Server> {
        let home = temp_dir("server").context("cannot create a temporary folder")?;
        if let Some(config) = &self.config {
            fs::write(config_path(&home), config).context("cannot write the configuration")?;
        }
        if self.has_key {
            write_key(&home.path().join("data")).context("cannot write the key")?;
        }
        let database = match self.backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(TestDatabase::create_migrated(|url| self.migrate(url))),
        };
        let installation = Installation {
            builder: self,
            database,
            home,
        };
        let process = installation.serve()?;
        Ok(Server {
            process,
            installation,
        })
    }
}

/// The part of a server that survives a restart.
#[derive(Debug)]
struct Installation {
    builder: ServerBuilder,
    // Fields are dropped in this order, after the process of `Server`.
    database: Option<TestDatabase>,
    home: TempDir,
}

impl Installation {
    fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The binary with the environment of this installation, without settings from the developer's environment.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.builder.binary);
        command.current_dir(self.home.path());
        let inherited = env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_string_lossy().starts_with(VARIABLE_PREFIX)) {
            command.env_remove(name);
        }
        if let Some(database) = &self.database {
            command.env(DATABASE_VARIABLE, database.url());
        }
        command.envs(
            self.builder
                .variables
                .iter()
                .map(|(name, value)| (name, value)),
        );
        command
    }

    fn serve(&self) -> Result<Process> {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        self.add_location(&mut command);
        command.args(&self.builder.arguments);
        Process::start(command)
    }

    fn add_location(&self, command: &mut Command) {
        command.arg("--data-dir").arg(self.data_dir());
        if self.builder.config.is_some() {
            command.arg("--config").arg(config_path(&self.home));
        }
    }
}

/// Writes the service key of all tests into a data folder.
pub fn write_key(data_dir: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)?;
    let file = data_dir.join("service.key");
    fs::write(&file, SERVICE_KEY)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))
}

fn config_path(home: &TempDir) -> PathBuf {
    home.path().join("switchboard.toml")
}

/// A running service on loopback. On drop it is killed and its data is removed.
#[derive(Debug)]
pub struct Server {
    process: Process,
    installation: Installation,
}

impl Server {
    /// Starts `binary serve` without any configuration. Integration tests pass
    /// `env!("CARGO_BIN_EXE_switchboard")`.
    pub fn start(binary: impl AsRef<Path>, backend: Backend) -> Self {
        Self::builder(binary, backend).start()
    }

    /// Starts to build a server with arguments, variables or a configuration file.
    pub fn builder(binary: impl AsRef<Path>, backend: Backend) -> ServerBuilder {
        ServerBuilder {
            binary: binary.as_ref().to_owned(),
            backend,
            arguments: Vec::new(),
            // The receivers of tests are on loopback.
            variables: vec![(CALLBACKS_ALLOW.to_owned(), LOOPBACK.to_owned())],
            config: None,
            has_key: true,
        }
    }

    /// The address that it listens on. The port changes with each restart.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// The URL of a path that starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.process.url())
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The output since its last start.
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// The data folder; it survives [`Server::restart`].
    pub fn data_dir(&self) -> PathBuf {
        self.installation.data_dir()
    }

    /// The URL of its database, if that is `PostgreSQL`.
    pub fn database_url(&self) -> Option<&str> {
        self.database().map(TestDatabase::url)
    }

    /// Its database, if that is `PostgreSQL`.
    pub fn database(&self) -> Option<&TestDatabase> {
        self.installation.database.as_ref()
    }

    /// Sends SIGKILL.
    pub fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Sends SIGTERM and waits for the graceful shutdown; panics if it does not finish.
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.terminate()
    }

    /// Starts it again on the same data. A server that still runs is shut down gracefully first.
    pub fn restart(&mut self) {
        if self.process.is_running() {
            self.process.terminate();
        }
        self.process = self
            .installation
            .serve()
            .unwrap_or_else(|error| panic!("no restart: {error:?}"));
    }

    /// Sets or removes an environment variable for the next start and the next command.
    pub fn set_env(&mut self, name: &str, value: Option<&str>) {
        let variables = &mut self.installation.builder.variables;
        variables.retain(|(known, _)| known != name);
        if let Some(value) = value {
            variables.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Whether its process still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Like [`Server::restart`], but returns an error if it does not start.
    pub fn try_restart(&mut self) -> Result<()> {
        if self.process.is_running() {
            self.process.terminate();
        }
        self.process = self.installation.serve()?;
        Ok(())
    }

    /// Runs another command of the same binary on the same data.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = self.installation.command();
        command.args(arguments);
        self.installation.add_location(&mut command);
        command
            .output()
            .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
    }

    /// [`Server::cli`] for a command that must succeed and print JSON (pass `--json`).
    pub fn cli_json(&self, arguments: &[&str]) -> Value {
        let output = self.cli(arguments);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (shown(&output.stdout), shown(&output.stderr));
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{stderr}{stdout}",
            output.status
        );
        serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("{arguments:?} printed no JSON ({error}):\n{stdout}"))
    }
}
