//! Copies that are refused, and a copy that differs from its source.

use super::*;

async fn refused(from: &DatabaseUrl, to: &DatabaseUrl) -> String {
    let moved = migrate(from, to, false, &mut TotalProgress::default()).await;
    moved.expect_err("it must be refused").to_string()
}

#[tokio::test]
async fn an_impossible_move_is_refused_with_a_reason() {
    let mut databases = TestDatabases::new();
    let (full, empty) = (databases.full("full.db").await, databases.file("empty.db"));
    let (other, server) = (databases.full("other.db").await, databases.server().await);
    let missing = databases.file("missing.db");
    for (name, from, to, reason) in [
        ("no source", &missing, &server, "there is no database"),
        ("the same", &full, &full, "the same database"),
        (
            "something in it",
            &full,
            &other,
            "is not empty, it holds 40 row(s) of account",
        ),
    ] {
        let error = refused(from, to).await;
        assert!(error.contains(reason), "{name}: {error}");
    }
    assert!(!databases.path("missing.db").exists(), "it is not created");

    Endpoint::make(&empty).await.expect("a new file");
    migrate(&full, &empty, true, &mut TotalProgress::default())
        .await
        .expect("begun");
    for (name, from, to, reason) in [
        (
            "another's copy",
            &other,
            &empty,
            "an unfinished copy of sqlite:",
        ),
        ("from a copy", &empty, &server, "itself an unfinished copy"),
    ] {
        let error = refused(from, to).await;
        assert!(error.contains(reason), "{name}: {error}");
    }
    complete(&full, &empty).await;
    let error = refused(&full, &server).await;
    assert!(error.contains("were moved to sqlite:"), "{error}");
    let error = refused(&other, &full).await;
    assert!(error.contains("whose contents were moved"), "{error}");
    execute(&other, "CREATE TABLE shoe (size INTEGER)").await;
    let error = refused(&other, &server).await;
    assert!(error.contains("the table shoe"), "{error}");
    execute(&other, "DROP TABLE shoe").await;
    execute(
        &other,
        "DELETE FROM schema_migration WHERE number = (SELECT max(number) FROM schema_migration)",
    )
    .await;
    let error = refused(&other, &server).await;
    assert!(
        error.contains("start the service of this version"),
        "{error}"
    );
}

#[tokio::test]
async fn a_move_is_not_completed_while_a_node_runs() {
    let mut databases = TestDatabases::new();
    let (source, target) = (databases.full("a.db").await, databases.server().await);
    execute(
        &source,
        "INSERT INTO node (alive_until_us) VALUES (CAST(unixepoch() + 60 AS INTEGER) * 1000000)",
    )
    .await;
    let moved = migrate(&source, &target, false, &mut TotalProgress::default()).await;
    assert!(matches!(moved, Ok(Moved::Begun { .. })), "{moved:?}");
    execute(&source, "UPDATE node SET alive_until_us = 1").await;
    complete(&source, &target).await;
    execute(
        &target,
        "INSERT INTO node (alive_until_us) VALUES (9000000000000000)",
    )
    .await;
    let error = undo(&source, &target)
        .await
        .expect_err("a node lives there");
    assert!(
        error.to_string().contains("1 node(s) work on postgres"),
        "{error}"
    );
    open(&source).await.expect_err("still closed");
}

/// Lost rows are noticed, and the source stays in use.
#[tokio::test]
async fn a_copy_that_differs_is_not_used() {
    const LOSE: &str = "
        CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER lose BEFORE INSERT ON token FOR EACH ROW WHEN (NEW.id = 7) EXECUTE FUNCTION lose()";
    let mut databases = TestDatabases::new();
    let (source, target) = (databases.full("a.db").await, databases.server().await);
    Endpoint::make(&target).await.expect("a schema");
    execute(&target, LOSE).await;
    let moved = migrate(&source, &target, false, &mut TotalProgress::default()).await;
    let Err(TransferError::Differs(checked)) = moved else {
        panic!("not noticed: {moved:?}");
    };
    let differing: Vec<&Checked> = checked
        .iter()
        .filter(|checked| !checked.is_equal())
        .collect();
    let shown: Vec<_> = differing
        .iter()
        .map(|it| (it.table, it.what.as_str(), it.source - it.target))
        .collect();
    assert_eq!(
        shown,
        [("token", "rows", 1), ("token", "checksum of id", 7)]
    );
    open(&source).await.expect("the source is in force");
    open(&target).await.expect_err("the copy is not");
    execute(&target, "DROP TRIGGER lose ON token").await;
    complete(&source, &target).await;
}

#[tokio::test]
async fn backups_do_not_overwrite_and_restores_need_an_empty_database() {
    let databases = TestDatabases::new();
    let (full, other) = (
        databases.full("full.db").await,
        databases.full("other.db").await,
    );
    let file = databases.path("backup");
    let make = async |replace| backup(&full, &file, replace, &mut TotalProgress::default()).await;
    make(false).await.expect("made");
    let error = make(false).await.expect_err("it is there").to_string();
    assert!(error.contains("--force"), "{error}");
    make(true).await.expect("replaced");
    let error = restore(&file, &other, &mut TotalProgress::default())
        .await
        .expect_err("not empty");
    assert!(error.to_string().contains("is not empty"), "{error}");
    let nowhere = databases.path("nowhere");
    let error = restore(&nowhere, &other, &mut TotalProgress::default())
        .await
        .expect_err("no file");
    assert!(
        error.to_string().contains("there is no database"),
        "{error}"
    );
    let missing = databases.file("missing.db");
    let error = backup(&missing, &nowhere, false, &mut TotalProgress::default())
        .await
        .expect_err("nothing");
    assert!(
        error.to_string().contains("there is no database"),
        "{error}"
    );
    assert!(!nowhere.exists());
}
