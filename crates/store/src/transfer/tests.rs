//! Copies databases with rows in every table: at once, in two passes, and with changes in between.

mod fill;
mod refusing;

use std::path::PathBuf;

use domain::{KeyRing, ServiceKey};
use testkit::{TempDir, TestDatabase, temp_dir};

use super::endpoint::Stream;
use super::plan::{EndpointColumns, Plan};
use super::tables::TABLES;
use super::value::Value;
use super::*;
use crate::{DatabaseUrl, OpenError, Options};
use fill::fill;

/// Counts the work, to check that all announced work was done.
#[derive(Default)]
struct TotalProgress {
    total: u64,
    done: u64,
}

impl Watch for TotalProgress {
    fn begins(&mut self, total: u64) {
        self.total = total;
    }

    fn table(&mut self, _: &'static str) {}

    fn advances(&mut self, by: u64) {
        self.done += by;
    }
}

/// Databases that are deleted with this value.
struct TestDatabases {
    folder: TempDir,
    servers: Vec<TestDatabase>,
}

impl TestDatabases {
    fn new() -> Self {
        Self {
            folder: temp_dir("transfer").expect("a temporary folder"),
            servers: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> DatabaseUrl {
        DatabaseUrl::Sqlite(self.path(name))
    }

    /// A file with rows in every table.
    async fn full(&self, name: &str) -> DatabaseUrl {
        let url = self.file(name);
        let mut endpoint = Endpoint::make(&url).await.expect("a new file");
        fill(&mut endpoint).await;
        url
    }

    async fn server(&mut self) -> DatabaseUrl {
        let database = TestDatabase::create().await;
        let url = database.url().parse().expect("a URL");
        self.servers.push(database);
        url
    }

    /// An empty database of each kind.
    async fn targets(&mut self) -> [DatabaseUrl; 2] {
        [self.server().await, self.file("target.db")]
    }
}

async fn open(url: &DatabaseUrl) -> Result<(), OpenError> {
    crate::open(url, &Options::new(keys())).await.map(drop)
}

fn keys() -> KeyRing {
    KeyRing::new(ServiceKey::new([7; 32]), [])
}

async fn execute(url: &DatabaseUrl, sql: &str) {
    let mut endpoint = Endpoint::find(url).await.expect("it is there");
    endpoint.execute(sql.to_owned()).await.expect("it is valid");
}

/// All rows of all tables, as they are copied.
async fn dump(url: &DatabaseUrl) -> Vec<(&'static str, Vec<Row>)> {
    let mut endpoint = Endpoint::find(url).await.expect("it is there");
    let engine = endpoint.engine();
    let mut all = Vec::new();
    for table in TABLES {
        let columns = endpoint.columns(table.name).await.expect("columns");
        let end = EndpointColumns {
            engine,
            columns: &columns,
        };
        let plan = Plan::new(table, &end, &end).expect("known");
        let mut stream = Stream::new(plan.whole(engine, false));
        // By name, so that both databases give the same order.
        let by_name = plan.by_name();
        let mut rows = Vec::new();
        loop {
            let page = endpoint.next(&mut stream).await.expect("rows");
            if page.is_empty() {
                break;
            }
            let named = |row: Row| by_name.iter().map(|&at| row[at].clone()).collect();
            rows.extend(page.into_iter().map(named).collect::<Vec<Row>>());
        }
        rows.sort();
        all.push((table.name, rows));
    }
    all
}

async fn assert_same(one: &DatabaseUrl, other: &DatabaseUrl) {
    for ((table, source), (_, copy)) in dump(one).await.iter().zip(&dump(other).await) {
        assert!(!source.is_empty(), "nothing in {table}");
        assert_eq!(source.len(), copy.len(), "{table}");
        assert!(source == copy, "{table} differs");
    }
}

async fn complete(from: &DatabaseUrl, to: &DatabaseUrl) -> Vec<Checked> {
    let mut progress = TotalProgress::default();
    let moved = migrate(from, to, false, &mut progress).await;
    let Ok(Moved::Complete(checked)) = moved else {
        panic!("not complete: {moved:?}");
    };
    assert_eq!(progress.done, progress.total);
    checked
}

#[tokio::test]
async fn every_table_and_column_of_both_databases_is_known() {
    let mut databases = TestDatabases::new();
    let urls = [databases.file("a.db"), databases.server().await];
    for from in &urls {
        for to in &urls {
            let mut source = Endpoint::make(from).await.expect("a schema");
            let mut target = Endpoint::make(to).await.expect("a schema");
            check_tables(&mut source, "source")
                .await
                .expect("all known");
            let there = source.tables().await.expect("tables");
            for table in TABLES
                .iter()
                .map(|table| table.name)
                .chain(NOT_COPIED.iter().copied())
            {
                assert!(there.contains(table), "{table} is not there any more");
            }
            let mut copier = Copier {
                source: &mut source,
                target: &mut target,
                known: None,
                watch: &mut TotalProgress::default(),
            };
            let plans = copier.plans().await.expect("each column has its place");
            assert_eq!(plans.len(), TABLES.len());
        }
    }
}

#[tokio::test]
async fn everything_is_copied_there_and_back() {
    let mut databases = TestDatabases::new();
    let first = databases.full("first.db").await;
    let (server, back) = (databases.server().await, databases.file("back.db"));
    let before = databases.file("before.db");
    std::fs::copy(databases.path("first.db"), databases.path("before.db")).expect("copied");

    let checked = complete(&first, &server).await;
    assert!(checked.len() > TABLES.len() && checked.iter().all(Checked::is_equal));
    assert_same(&before, &server).await;
    let refusal = open(&first).await.expect_err("it was moved").to_string();
    assert!(refusal.contains("was moved to postgres://"), "{refusal}");
    open(&server).await.expect("it can be used");
    let again = migrate(&first, &server, false, &mut TotalProgress::default()).await;
    assert!(matches!(again, Ok(Moved::Already)), "{again:?}");

    complete(&server, &back).await;
    assert_same(&before, &back).await;
    open(&server).await.expect_err("it was moved on");
    open(&back).await.expect("it can be used");
}

/// Sequences continue after the last number ever used, not after the largest existing one.
#[tokio::test]
async fn numbers_are_not_used_again() {
    const ADD: &str =
        "INSERT INTO callback (account_id, message_id, created_us, due_us, state, tries, kind)
        VALUES (1, 1, 1, 1, 2, 1, 0)";
    let mut databases = TestDatabases::new();
    for target in databases.targets().await {
        let name = format!("{:?}.db", std::mem::discriminant(&target)).replace(['(', ')'], "");
        let source = databases.full(&name).await;
        execute(
            &source,
            "UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'callback'",
        )
        .await;
        execute(&source, "UPDATE id_block SET next = 7").await;
        complete(&source, &target).await;
        execute(&target, ADD).await;
        let mut endpoint = Endpoint::find(&target).await.expect("there");
        let last = endpoint.number("SELECT max(id) FROM callback").await;
        assert_eq!(last.expect("a number"), 5001);
        let free = "SELECT next - (SELECT max(id) FROM message) FROM id_block";
        let free = endpoint.number(free).await.expect("a number");
        assert!(free > 0, "an ID would be given out twice");
    }
}

#[tokio::test]
async fn changes_between_two_passes_are_copied() {
    const CHANGES: [&str; 9] = [
        "DELETE FROM message WHERE id = 1",
        "UPDATE message SET seen_us = 77 WHERE final_us IS NOT NULL AND id % 2 = 0",
        "UPDATE message SET final_us = 5, status = 1, state = 3 WHERE final_us IS NULL",
        "UPDATE callback SET state = 0, tries = tries + 1 WHERE id IN (2, 3)",
        "DELETE FROM callback_attempt WHERE id = (SELECT max(id) FROM callback_attempt)",
        "DELETE FROM callback_attempt WHERE id = (SELECT min(id) FROM callback_attempt)",
        "UPDATE traffic SET messages = messages + 1 WHERE begins = 3",
        "UPDATE account SET credit_limit_micros = 4711 WHERE id = 2",
        "DELETE FROM queue WHERE id < 3",
    ];
    let mut databases = TestDatabases::new();
    for (number, target) in databases.targets().await.into_iter().enumerate() {
        let source = databases.full(&format!("source{number}.db")).await;
        // Twice, as after an interrupted pass.
        for pass in 1..=2 {
            let moved = migrate(&source, &target, true, &mut TotalProgress::default()).await;
            let Ok(Moved::Begun { remaining }) = moved else {
                panic!("pass {pass}: {moved:?}");
            };
            let of = |table| remaining.iter().find(|(name, _)| *name == table);
            assert!(
                of("account").is_some() && of("audit").is_none(),
                "{remaining:?}"
            );
            let refusal = open(&target).await.expect_err("unfinished").to_string();
            assert!(
                refusal.contains("run the same `switchboard migrate`"),
                "{refusal}"
            );
            open(&source).await.expect("the source goes on");
        }
        for change in CHANGES {
            execute(&source, change).await;
        }
        complete(&source, &target).await;
        assert_same(&source, &target).await;
        open(&target).await.expect("it can be used");
    }
}

/// On `PostgreSQL`, recent counts are not added up yet.
#[tokio::test]
async fn recent_counts_are_added_up_while_copying() {
    const FRESH: &str = "
        INSERT INTO traffic_fresh (account_id, hour, channel, network, status, error, bucket, messages, parts,
            cost_micros)
        VALUES (1, 480, 0, 2472002, 1, 0, 2, 3, 4, 5), (1, 481, 0, 2472002, 1, 0, NULL, 10, 10, 10)";
    let mut databases = TestDatabases::new();
    let (first, server) = (databases.full("first.db").await, databases.server().await);
    complete(&first, &server).await;
    let sums = "SELECT CAST(sum(messages) AS BIGINT) FROM traffic";
    let mut endpoint = Endpoint::find(&server).await.expect("there");
    let before = endpoint.number(sums).await.expect("a number");
    execute(&server, FRESH).await;
    let back = databases.file("back.db");
    complete(&server, &back).await;
    let mut endpoint = Endpoint::find(&back).await.expect("there");
    // Once by the hour, once by the day.
    assert_eq!(endpoint.number(sums).await.expect("a number"), before + 26);
    let day = "SELECT messages FROM traffic WHERE span = 1 AND begins = 20 AND network = 2472002";
    assert_eq!(endpoint.number(day).await.expect("a number"), 13);
    let delivered =
        "SELECT messages FROM latency_day WHERE account_id = 1 AND day = 20 AND bucket = 2";
    assert_eq!(endpoint.number(delivered).await.expect("a number"), 3);
}

/// If the process stops between the two seals, the same command completes the move.
#[tokio::test]
async fn a_move_that_was_interrupted_at_its_end_is_completed() {
    let mut databases = TestDatabases::new();
    let (source, target) = (databases.full("a.db").await, databases.server().await);
    complete(&source, &target).await;
    let mut endpoint = Endpoint::find(&target).await.expect("there");
    let created_us = Endpoint::find(&source)
        .await
        .expect("there")
        .created_us()
        .await;
    let seal = Seal {
        kind: Kind::Copying,
        created_us: created_us.expect("a time"),
        other: source.to_string(),
    };
    endpoint.set_seal(Some(&seal)).await.expect("sealed");
    for url in [&source, &target] {
        open(url).await.expect_err("neither may send");
    }
    complete(&source, &target).await;
    open(&target).await.expect("it can be used");
}

#[tokio::test]
async fn a_move_can_be_undone_and_repeated() {
    let mut databases = TestDatabases::new();
    let (source, target) = (databases.full("a.db").await, databases.server().await);
    complete(&source, &target).await;
    undo(&source, &target).await.expect("undone");
    open(&source).await.expect("open again");
    open(&target).await.expect_err("closed");
    undo(&source, &target).await.expect_err("it is open");
    execute(&source, "UPDATE account SET name = 'other' WHERE id = 1").await;
    complete(&source, &target).await;
    assert_same(&source, &target).await;
}

#[tokio::test]
async fn a_backup_is_complete_and_can_be_restored_into_both_databases() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut databases = TestDatabases::new();
    let (file, server) = (databases.full("file.db").await, databases.server().await);
    restore(
        &databases.path("file.db"),
        &server,
        &mut TotalProgress::default(),
    )
    .await
    .expect("any file of ours is a backup");
    execute(&server, "UPDATE id_block SET next = next - 1000000").await;
    for (number, source) in [&file, &server].into_iter().enumerate() {
        let backup_file = databases.path(&format!("backup{number}"));
        let mut progress = TotalProgress::default();
        backup(source, &backup_file, false, &mut progress)
            .await
            .expect("made");
        assert!(progress.done > 0);
        let mode = std::fs::metadata(&backup_file)
            .expect("there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let left: Vec<_> = std::fs::read_dir(databases.folder.path())
            .expect("a folder")
            .collect();
        let left = left.iter().flatten().map(std::fs::DirEntry::file_name);
        let left: Vec<_> = left
            .filter(|name| name.to_string_lossy().contains("unfinished"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        for target in [
            databases.server().await,
            databases.file(&format!("target{number}.db")),
        ] {
            restore(&backup_file, &target, &mut TotalProgress::default())
                .await
                .expect("restored");
            execute(&target, "UPDATE id_block SET next = next - 1000000").await;
            assert_same(&file, &target).await;
            open(&target).await.expect("it can be used");
        }
    }
}

/// A backup of an older version is migrated while it is restored; the file itself does not change.
#[tokio::test]
async fn a_backup_of_an_older_schema_is_restored() {
    let mut databases = TestDatabases::new();
    let path = databases.path("old.db");
    let old = rusqlite::Connection::open(&path).expect("a file");
    let history = "CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_us INTEGER NOT NULL)";
    old.execute_batch(history).expect("valid");
    for step in &SQLITE[..10] {
        old.execute_batch(step.sql).expect("valid");
        let add = "INSERT INTO schema_migration VALUES (?1, ?2, 1)";
        old.execute(add, (step.number, step.name)).expect("valid");
    }
    old.execute_batch("INSERT INTO account (name, balance_micros, credit_limit_micros, suspended, callback_secret, created_us)
        VALUES ('x', 0, 5, 0, '', 1)")
        .expect("valid");
    drop(old);
    let before = std::fs::read(&path).expect("a file");
    let target = databases.server().await;
    restore(&path, &target, &mut TotalProgress::default())
        .await
        .expect("restored");
    assert_eq!(before, std::fs::read(&path).expect("a file"));
    let mut endpoint = Endpoint::find(&target).await.expect("there");
    assert_eq!(
        endpoint
            .number("SELECT credit_limit_micros FROM account")
            .await
            .expect("a row"),
        5
    );
}

/// The other tests depend on this: they compare values.
#[test]
fn values_differ_by_kind_and_content() {
    assert!(Value::Int(1) != Value::Int(2) && Value::Null != Value::Int(0));
    assert!(Value::Text("1".into()) != Value::Bytes(b"1".to_vec()));
}
