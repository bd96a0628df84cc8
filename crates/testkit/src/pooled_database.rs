//! A database behind a pooler in transaction mode. The settings are read from docs/SCALING.md, so the page is tested
//! too.

use tokio_postgres::config::Host;

use crate::{Pooler, PoolerUser, TestDatabase};

const PAGE: &str = include_str!("../../../docs/SCALING.md");
/// The line with the server's address in the `pgbouncer.ini` of the page.
const SERVER: &str = "switchboard = host=127.0.0.1 port=5432";
/// The start of the statements with which the page sets options for its user and database.
const ROLE: &str = "ALTER ROLE switchboard IN DATABASE switchboard SET ";
/// The pooler requires a password even if the server does not.
const PASSWORD: &str = "pooled";

/// A database of one test with a pooler in front of it.
pub struct PooledDatabase {
    // Dropped before the database.
    pooler: Pooler,
    database: TestDatabase,
    name: String,
}

impl PooledDatabase {
    /// Creates one with the settings of the page.
    pub fn create() -> Self {
        let pooled = Self::create_without_user_settings("");
        pooled.apply_user_settings();
        pooled
    }

    /// Creates one with extra settings of the pooler and without the settings for the user.
    pub fn create_without_user_settings(extra_settings: &str) -> Self {
        let database = TestDatabase::create_blocking();
        let config: tokio_postgres::Config = database.url().parse().expect("a URL");
        let [Host::Tcp(host)] = config.get_hosts() else {
            panic!("one host: {}", database.url());
        };
        let name = config.get_dbname().expect("a name").to_owned();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let settings = block("ini");
        assert!(settings.contains(SERVER), "{settings}");
        let server = format!("{name} = host={host} port={port}");
        let settings = format!("{}\n{extra_settings}\n", settings.replace(SERVER, &server));
        let password = config.get_password().unwrap_or(PASSWORD.as_bytes());
        let user = PoolerUser {
            name: config.get_user().expect("a user").to_owned(),
            password: String::from_utf8(password.to_vec()).expect("a plain password"),
        };
        let pooler = Pooler::start(&settings, user).unwrap_or_else(|error| panic!("{error:?}"));
        Self {
            pooler,
            database,
            name,
        }
    }

    /// Applies the settings for the user from the page, only to this database.
    pub fn apply_user_settings(&self) {
        let sql = block("sql");
        assert!(sql.starts_with(ROLE), "{sql}");
        let own = format!("ALTER ROLE CURRENT_USER IN DATABASE {} SET ", self.name);
        let set = self.database.execute_blocking(&sql.replace(ROLE, &own));
        set.expect("the statements of the page are valid");
    }

    /// The URL that nodes connect to.
    pub fn url(&self) -> String {
        self.pooler.url(&self.name)
    }

    /// The database, on its server.
    pub fn database(&self) -> &TestDatabase {
        &self.database
    }

    /// The number of connections that nodes have to the pooler.
    pub fn clients(&self) -> usize {
        let clients = self.pooler.clients(&self.name);
        clients.expect("the pooler answers")
    }

    /// The maximum number of connections from the pooler to the server.
    pub fn max_server_connections() -> usize {
        let settings = block("ini");
        let size = settings
            .lines()
            .find_map(|line| line.strip_prefix("default_pool_size = "));
        size.expect("a size").parse().expect("a number")
    }
}

/// The code block in this language in the section about poolers.
fn block(language: &str) -> String {
    let (_, part) = PAGE
        .split_once("\n## Poolers\n")
        .expect("the section exists");
    let (_, block) = part
        .split_once(&format!("```{language}\n"))
        .expect("the code block exists");
    let (block, _) = block.split_once("```").expect("the code block ends");
    block.to_owned()
}
