//! Tests of `SQLite` only: group commit, a full and a broken disk, the length of the write-ahead log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use domain::ports::StoreError;
use domain::{KeyRing, ServiceKey};
use rusqlite::{Connection, ffi};
use testkit::{TempDir, temp_dir};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::SqliteStore;
use crate::rows::encrypted::Encrypting;

struct File {
    folder: TempDir,
}

impl File {
    fn create() -> Self {
        let folder = temp_dir("sqlite").expect("a temporary folder");
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("switchboard.db")
    }

    async fn open(&self) -> SqliteStore {
        let keys = KeyRing::new(ServiceKey::new([7; 32]), []);
        let steps = crate::migrations::SQLITE.to_vec();
        let opened = SqliteStore::open(&self.path(), steps, keys, Encrypting::AsBefore).await;
        opened.expect("the file opens").0
    }
}

/// Blocks the writer until it is released, so that all work queued meanwhile ends up in one transaction.
struct BlockedWriter {
    release: Sender<()>,
    waiting: JoinHandle<Result<(), StoreError>>,
}

impl BlockedWriter {
    async fn block(store: &Arc<SqliteStore>) -> Self {
        let (release, released) = channel();
        let (start, started) = oneshot::channel();
        let store = Arc::clone(store);
        let wait = move |_: &Connection| {
            start.send(()).expect("the test waits");
            released.recv().expect("the test releases the writer");
            Ok(())
        };
        let waiting = tokio::spawn(async move { store.write("block the writer", wait).await });
        started.await.expect("the writer starts the blocking job");
        Self { release, waiting }
    }

    async fn release(self) {
        self.release.send(()).expect("the writer waits");
        let finished = self.waiting.await.expect("the job does not panic");
        finished.expect("an empty transaction commits");
    }
}

fn add_version(db: &Connection, amount: i64) -> rusqlite::Result<()> {
    db.execute("UPDATE access_version SET version = version + ?1", [amount])
        .map(drop)
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT version FROM access_version", [], |row| row.get(0))
}

fn failure(code: std::os::raw::c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

#[tokio::test]
async fn a_failing_job_does_not_affect_others_in_its_transaction() {
    let file = File::create();
    let store = Arc::new(file.open().await);
    let blocked = BlockedWriter::block(&store).await;
    let (first, failing, last, ()) = tokio::join!(
        store.write("first", |db| add_version(db, 10)),
        store.write("failing", |db| add_version(db, 100)
            .and(Err::<(), _>(failure(ffi::SQLITE_CONSTRAINT)))),
        store.write("last", |db| add_version(db, 1_000)),
        blocked.release(),
    );
    assert!(first.is_ok() && last.is_ok());
    assert!(
        matches!(
            failing,
            Err(StoreError::Unexpected {
                operation: "failing",
                ..
            })
        ),
        "{failing:?}"
    );
    assert_eq!(
        store.read("version", version).await.expect("answers"),
        1_011
    );
}

#[tokio::test]
async fn a_failing_job_alone_in_its_transaction_is_rolled_back() {
    let file = File::create();
    let store = file.open().await;
    let failing =
        |db: &Connection| add_version(db, 100).and(Err::<(), _>(failure(ffi::SQLITE_CONSTRAINT)));
    assert!(store.write("failing", failing).await.is_err());
    assert_eq!(store.read("version", version).await.expect("answers"), 1);
}

#[tokio::test]
async fn a_panicking_job_does_not_affect_others_or_the_thread() {
    let file = File::create();
    let store = Arc::new(file.open().await);
    let panics = |db: &Connection| -> rusqlite::Result<()> {
        add_version(db, 100)?;
        std::panic::resume_unwind(Box::new("on purpose"))
    };
    let alone = store.write("alone", panics).await;
    let blocked = BlockedWriter::block(&store).await;
    let (first, beside, last, ()) = tokio::join!(
        store.write("first", |db| add_version(db, 10)),
        store.write("beside", panics),
        store.write("last", |db| add_version(db, 1_000)),
        blocked.release(),
    );
    assert!(first.is_ok() && last.is_ok());
    let reading = store.read("reading", panics).await;
    for panicked in [alone, beside, reading] {
        assert!(
            matches!(panicked, Err(StoreError::Unexpected { .. })),
            "{panicked:?}"
        );
    }
    assert_eq!(
        store.read("version", version).await.expect("answers"),
        1_011
    );
}

#[tokio::test]
async fn dropping_the_store_finishes_queued_work() {
    let file = File::create();
    let store = Arc::new(file.open().await);
    let blocked = BlockedWriter::block(&store).await;
    let queued = store.write("queued", |db| add_version(db, 10));
    let given_up = tokio::time::timeout(std::time::Duration::ZERO, queued).await;
    assert!(given_up.is_err(), "the writer is blocked");
    blocked.release().await;
    drop(Arc::into_inner(store).expect("nobody else holds it"));

    let store = file.open().await;
    assert_eq!(store.read("version", version).await.expect("answers"), 11);
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let file = File::create();
    let store = file.open().await;
    store
        .write("write", |db| add_version(db, 1))
        .await
        .expect("written");
    store.read("version", version).await.expect("answers");
    drop(store);
    let files = std::fs::read_dir(file.folder.path()).expect("readable");
    assert_eq!(files.count(), 1, "no log is left behind");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_space() {
    let file = File::create();
    let store = file.open().await;
    let write = |db: &Connection| {
        add_version(db, 1)?;
        db.execute(
            "INSERT INTO idempotency VALUES (1, zeroblob(1000000), x'00', 1, 1, 1, 1)",
            [],
        )
        .map(drop)
    };
    let limit = |pages: i64| move |db: &Connection| db.pragma_update(None, "max_page_count", pages);
    store
        .write("limit", limit(100))
        .await
        .expect("the limit is set");
    for _ in 0..2 {
        let refused = store.write("fill", write).await;
        assert!(
            matches!(refused, Err(StoreError::Full { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(store.read("version", version).await.expect("answers"), 1);
    store
        .write("limit", limit(10_000))
        .await
        .expect("the limit is set");
    store
        .write("fill", write)
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn no_write_is_tried_after_one_that_is_not_durable() {
    let file = File::create();
    let store = file.open().await;
    for (name, work) in [
        ("fails", Err(failure(ffi::SQLITE_IOERR_FSYNC))),
        ("would not fail", Ok(())),
    ] {
        let outcome = store
            .write(name, move |db| add_version(db, 1).and(work))
            .await;
        assert!(
            matches!(outcome, Err(StoreError::Broken { .. })),
            "{name}: {outcome:?}"
        );
    }
    assert_eq!(
        store
            .read("version", version)
            .await
            .expect("what was committed can be read"),
        1
    );
}

#[tokio::test]
async fn the_log_stays_short() {
    let file = File::create();
    let store = file.open().await;
    let create = |db: &Connection| db.execute_batch("CREATE TABLE filler (bytes BLOB)");
    store.write("create", create).await.expect("created");
    for _ in 0..40 {
        let write =
            |db: &Connection| db.execute("INSERT INTO filler VALUES (zeroblob(1000000))", []);
        store.write("write", write).await.expect("written");
    }
    let log = file.folder.path().join("switchboard.db-wal");
    let bytes = std::fs::metadata(log).expect("there is a log").len();
    assert!(
        bytes < 8_000_000,
        "{bytes} bytes in the log after 40,000,000 were written"
    );
}
