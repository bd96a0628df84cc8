//! An empty `SQLite` database, for tests that run the use cases without the program.

use std::sync::Arc;

use domain::ports::{NewAccount, Store};
use domain::{KeyRing, Money, ServiceKey, Timestamp};
use store::{DatabaseUrl, Options};
use testkit::{TempDir, temp_dir};

/// The database is removed when this is dropped.
pub(crate) struct Database(TempDir);

/// The options that the services of the tests open their databases with.
pub(crate) fn options() -> Options {
    let key = ServiceKey::parse(testkit::SERVICE_KEY).expect("a key");
    Options::new(KeyRing::new(key, []))
}

impl Database {
    pub(crate) fn create() -> Self {
        Self(temp_dir("database").expect("a temporary folder"))
    }

    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        let url: DatabaseUrl = format!("sqlite:{}", self.path()).parse().expect("a URL");
        let opened = store::open(&url, &options()).await;
        opened.expect("the database opens")
    }

    /// Runs a statement directly on the file.
    pub(crate) fn execute(&self, sql: &str) {
        let executed = self.file().execute_batch(sql);
        executed.expect("the statement is valid");
    }

    /// Reads rows of integers and nulls directly from the file.
    pub(crate) fn numbers(&self, sql: &str, columns: usize) -> Vec<Vec<Option<i64>>> {
        let file = self.file();
        let mut statement = file.prepare(sql).expect("the statement is valid");
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
        let rows = rows.expect("rows").collect::<Result<_, _>>();
        rows.expect("numbers")
    }

    fn path(&self) -> String {
        let path = self.0.path().join("switchboard.db");
        path.display().to_string()
    }

    fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).expect("the file opens")
    }
}

/// An account with a balance.
pub(crate) fn new_account(name: &str) -> NewAccount {
    NewAccount {
        name: name.parse().expect("a name"),
        balance: Money::from_micros(12_345_678),
        callback_secret: format!("secret of {name}"),
        created_at: Timestamp::from_second(1_800_000_001).expect("within range"),
    }
}
