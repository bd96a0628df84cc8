//! A separate `PostgreSQL` database for each test.

mod held_snapshot;

pub use held_snapshot::HeldSnapshot;

use crate::unique::unique_name;
use std::sync::OnceLock;
use std::{env, thread};
use tokio::runtime;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// The variable with the URL of the server on which tests create their databases:
/// `postgres://postgres@127.0.0.1:PORT/postgres`.
pub const POSTGRES_VARIABLE: &str = "SWITCHBOARD_TEST_POSTGRES";

/// Each service has a key of its own. The stand-in of this crate's own tests has no tables.
const FORGET_KEY: &str = "DO $$ BEGIN IF to_regclass('service_key') IS NOT NULL THEN DELETE FROM service_key; END IF; END $$";

/// A new, empty database. It is dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    server: String,
    url: String,
}

impl TestDatabase {
    /// Creates a database on the server that [`POSTGRES_VARIABLE`] names.
    ///
    /// Panics without a server, because a test that skipped `PostgreSQL` would look as if it had passed.
    pub async fn create() -> Self {
        let server = env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "this needs a PostgreSQL server: run `scripts/test`, which starts one, \
                 or set {POSTGRES_VARIABLE}=postgres://USER@HOST:PORT/DATABASE"
            )
        });
        let name = unique_name("test");
        if let Err(error) = execute(&server, &format!("CREATE DATABASE {name}")).await {
            panic!("cannot create a database on {POSTGRES_VARIABLE}={server}: {error:?}");
        }
        let url = with_database(&server, &name);
        Self { name, server, url }
    }

    /// Creates a database that has the tables of the service. `migrate` makes them in the empty database of a URL. It
    /// runs once in a process: further databases are copies of the first one, which are there three times as soon.
    pub fn create_migrated(migrate: impl FnOnce(&str)) -> Self {
        /// It is never dropped: the server of the tests is temporary.
        static TEMPLATE: OnceLock<TestDatabase> = OnceLock::new();
        let template = TEMPLATE.get_or_init(|| {
            let template = Self::create_blocking();
            migrate(template.url());
            template.execute_blocking(FORGET_KEY).expect("a statement");
            template
        });
        let (server, name) = (template.server.clone(), unique_name("test"));
        let sql = format!("CREATE DATABASE {name} TEMPLATE {}", template.name);
        let created = on_own_runtime({
            let server = server.clone();
            move || async move { execute(&server, &sql).await }
        });
        created.expect("a database can be copied");
        let url = with_database(&server, &name);
        Self { name, server, url }
    }

    /// [`TestDatabase::create`] for blocking callers.
    pub fn create_blocking() -> Self {
        on_own_runtime(Self::create)
    }

    /// The URL to connect to this database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a statement.
    pub fn execute_blocking(&self, sql: &str) -> Result<(), Error> {
        let (url, sql) = (self.url.clone(), sql.to_owned());
        on_own_runtime(move || async move { execute(&url, &sql).await })
    }

    /// The rows of a query, as text. `NULL` is empty.
    pub fn query_blocking(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        let (url, sql) = (self.url.clone(), sql.to_owned());
        on_own_runtime(move || async move { query(&url, &sql).await })
    }

    /// Opens a transaction with a snapshot of the database and keeps it open.
    pub fn hold_snapshot(&self) -> Result<HeldSnapshot, Error> {
        HeldSnapshot::open(self.url.clone())
    }

    /// The size of its tables and indexes on disk.
    pub fn size_bytes(&self) -> Result<u64, Error> {
        const SIZE: &str = "SELECT pg_database_size(current_database())";
        let url = self.url.clone();
        let size = on_own_runtime(move || async move { query_one(&url, SIZE).await })?;
        Ok(u64::try_from(size).unwrap_or(0))
    }
}

impl Drop for TestDatabase {
    /// `FORCE` closes the connections of a process that was killed a moment ago. Errors are only printed: the server of
    /// the tests is temporary.
    fn drop(&mut self) {
        let server = self.server.clone();
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = on_own_runtime(move || async move { execute(&server, &sql).await });
        if let Err(error) = dropped {
            eprintln!("could not drop database {}: {error}", self.name);
        }
    }
}

async fn execute(server: &str, sql: &str) -> Result<(), Error> {
    connected(server, async |client| client.batch_execute(sql).await).await
}

async fn query_one(server: &str, sql: &str) -> Result<i64, Error> {
    let row = connected(server, async |client| client.query_one(sql, &[]).await).await?;
    row.try_get(0)
}

async fn query(server: &str, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let answers = connected(server, async |client| client.simple_query(sql).await).await?;
    let rows = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(rows
        .map(|row| {
            let fields = (0..row.len()).map(|field| row.get(field).unwrap_or_default());
            fields.map(str::to_owned).collect()
        })
        .collect())
}

/// Opens a connection, does one thing with it and closes it.
pub(crate) async fn connected<T>(
    server: &str,
    work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await?;
    let driver = tokio::spawn(connection);
    let done = work(&client).await;
    drop(client);
    if let Ok(Err(error)) = driver.await {
        eprintln!("PostgreSQL connection ended badly: {error}");
    }
    done
}

/// Runs a future on a new thread, because the caller's thread may already run an async runtime.
pub(crate) fn on_own_runtime<T, F>(task: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let worker = thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be built").block_on(task())
    });
    match worker.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Replaces the database in the URL of a server.
fn with_database(server: &str, name: &str) -> String {
    let (address, options) = match server.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (server, String::new()),
    };
    let authority_start = address.find("://").map_or(0, |at| at + "://".len());
    let authority_end = address[authority_start..]
        .find('/')
        .map_or(address.len(), |at| authority_start + at);
    format!("{}/{name}{options}", &address[..authority_end])
}

#[cfg(test)]
mod tests {
    use super::{TestDatabase, execute, with_database};

    #[test]
    fn the_database_of_a_url_is_replaced() {
        let cases = [
            ("path", "postgres://u@h:1/postgres", "postgres://u@h:1/x"),
            ("no path", "postgres://u@h:1", "postgres://u@h:1/x"),
            ("empty path", "postgres://u@h:1/", "postgres://u@h:1/x"),
            (
                "options",
                "postgres://u@h/db?sslmode=disable",
                "postgres://u@h/x?sslmode=disable",
            ),
            (
                "slash in an option",
                "postgres://u@/db?host=/run/pg",
                "postgres://u@/x?host=/run/pg",
            ),
        ];
        for (case, server, expected) in cases {
            assert_eq!(with_database(server, "x"), expected, "{case}");
        }
    }

    #[tokio::test]
    async fn a_database_is_fresh_and_gone_after_the_drop() {
        let database = TestDatabase::create().await;
        let url = database.url().to_owned();
        execute(&url, "CREATE TABLE t (id int)")
            .await
            .expect("a new database can be written");
        assert!(database.size_bytes().expect("it can be asked") > 0);
        let rows = database.query_blocking("SELECT 1, NULL UNION SELECT 2, 'a' ORDER BY 1");
        assert_eq!(rows.expect("valid"), [["1", ""], ["2", "a"]]);
        drop(database);
        assert!(
            execute(&url, "SELECT 1").await.is_err(),
            "the database is still there"
        );
    }
}
