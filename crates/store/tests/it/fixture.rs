//! An empty database for a test.

use std::sync::Arc;

use domain::ports::{Store, WorkStore};
use domain::{KeyRing, ServiceKey};
use engine::clock::SystemClock;
use memory_store::{Direct, MemoryStore};
use store::{DatabaseUrl, OpenError, Options};
use testkit::{PooledDatabase, TempDir, TestDatabase, temp_dir};

/// A database that is removed with this value.
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres(ServerDatabase),
}

/// An empty store in memory, with the clock of this machine.
pub(crate) fn memory_store() -> Arc<dyn WorkStore> {
    Arc::new(MemoryStore::new(Direct::new(Arc::new(SystemClock))))
}

/// How a database on a server is reached.
pub(crate) enum ServerDatabase {
    Direct(TestDatabase),
    Pooled(PooledDatabase),
}

impl ServerDatabase {
    /// The database, on its server.
    pub(crate) fn database(&self) -> &TestDatabase {
        match self {
            Self::Direct(database) => database,
            Self::Pooled(pooled) => pooled.database(),
        }
    }
}

/// The options that the services of the tests open their databases with.
pub(crate) fn options() -> Options {
    let key = ServiceKey::parse(testkit::SERVICE_KEY).expect("a key");
    Options::new(KeyRing::new(key, []))
}

/// If this is set, the suite uses `PostgreSQL` through a pooler wherever it can.
const BY_POOLER_VARIABLE: &str = "SWITCHBOARD_TEST_BY_POOLER";

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(temp_dir("contract").expect("a temporary folder"))
    }

    pub(crate) async fn postgres() -> Self {
        if std::env::var_os(BY_POOLER_VARIABLE).is_some() {
            return Self::pooled();
        }
        let migrated = tokio::task::spawn_blocking(|| {
            TestDatabase::create_migrated(|url| {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                let url: DatabaseUrl = url.parse().expect("a valid URL");
                let opened = runtime.block_on(store::open(&url, &options()));
                drop(opened.expect("the database opens"));
                // Closes the connections, which keep a database from being copied.
                drop(runtime);
            })
        });
        let database = migrated.await.expect("a database");
        Self::Postgres(ServerDatabase::Direct(database))
    }

    /// Takes all tables away.
    pub(crate) async fn empty(&self) {
        if matches!(self, Self::Postgres(_)) {
            self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
                .await;
        }
    }

    /// A database behind a pooler in transaction mode.
    pub(crate) fn pooled() -> Self {
        Self::Postgres(ServerDatabase::Pooled(PooledDatabase::create()))
    }

    /// A database with serializable transactions by default.
    pub(crate) async fn serializable() -> Self {
        const SET: &str = "DO $$ BEGIN EXECUTE format(
            'ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$";
        let database = Self::postgres().await;
        database.execute(SET).await;
        database
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => {
                format!("sqlite:{}", folder.path().join("switchboard.db").display())
            }
            Self::Postgres(ServerDatabase::Direct(database)) => database.url().to_owned(),
            Self::Postgres(ServerDatabase::Pooled(pooled)) => pooled.url(),
        }
    }

    /// Opens the database; opening it several times is like several nodes.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        self.try_open().await.expect("the database opens")
    }

    pub(crate) async fn try_open(&self) -> Result<Arc<dyn Store>, OpenError> {
        let url: DatabaseUrl = self.url().parse().expect("a valid URL");
        store::open(
            &url,
            &Options {
                postgres_connections: 4,
                ..options()
            },
        )
        .await
    }

    /// Runs a statement without the store.
    pub(crate) async fn execute(&self, sql: &str) {
        let executed = self.try_execute(sql).await;
        executed.expect("the statement is valid");
    }

    /// Runs a statement without the store; the error is that of the database.
    pub(crate) async fn try_execute(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(_) => {
                let executed = self.file().execute_batch(sql);
                executed.map_err(|error| error.to_string())
            }
            Self::Postgres(server) => {
                let (client, _connection) = connect(server.database()).await;
                let executed = client.batch_execute(sql).await;
                executed.map_err(|error| {
                    let message = error.as_db_error().map(ToString::to_string);
                    message.unwrap_or_else(|| error.to_string())
                })
            }
        }
    }

    /// Reads rows of whole numbers and nulls without the store.
    pub(crate) async fn numbers(&self, sql: &str, columns: usize) -> Vec<Vec<Option<i64>>> {
        match self {
            Self::Sqlite(_) => {
                let file = self.file();
                let mut statement = file.prepare(sql).expect("the statement is valid");
                let rows =
                    statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
                rows.expect("rows")
                    .collect::<Result<_, _>>()
                    .expect("numbers")
            }
            Self::Postgres(server) => {
                let (client, _connection) = connect(server.database()).await;
                let rows = client
                    .query(sql, &[])
                    .await
                    .expect("the statement is valid");
                rows.iter()
                    .map(|row| (0..columns).map(|at| row.get(at)).collect())
                    .collect()
            }
        }
    }

    fn file(&self) -> rusqlite::Connection {
        let path = self.url().replacen("sqlite:", "", 1);
        rusqlite::Connection::open(path).expect("the file opens")
    }
}

pub(crate) async fn connect(
    database: &TestDatabase,
) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    let connected = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.expect("the server answers");
    (
        client,
        tokio::spawn(async move { connection.await.expect("the connection ends well") }),
    )
}
