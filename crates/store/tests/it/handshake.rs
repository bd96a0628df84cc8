//! Programs of different versions on one database.

use std::sync::Arc;

use domain::ports::{HeartbeatResult, NodeInfo, Store};
use jiff::SignedDuration;
use store::{Compatibility, DatabaseUrl, OpenError, Schema};

use super::fixture::{Database, options};
use super::sample::accept;
use super::steps::{HOUR, claim, due, info, join, join_for, renew_heartbeat};

on_both_databases!(
    an_older_program_works_after_a_compatible_migration,
    an_older_program_is_refused_after_a_breaking_migration,
    a_breaking_migration_waits_for_older_nodes,
    a_compatible_migration_waits_for_no_node,
    a_node_learns_that_its_program_is_outdated,
    nodes_of_older_programs_are_distinguished,
);

/// Undoes the migration that gave nodes their description, and the one before it, which shared binds. All nodes become
/// dead, so that no later migration waits for them.
pub(super) const UNDO_NODE_INFO: &str = "
    UPDATE node SET alive_until_us = 0;
    ALTER TABLE node DROP COLUMN started_us; ALTER TABLE node DROP COLUMN schema_level;
    ALTER TABLE node DROP COLUMN works; ALTER TABLE node DROP COLUMN roles; ALTER TABLE node DROP COLUMN version;
    ALTER TABLE node DROP COLUMN host; ALTER TABLE node DROP COLUMN listen;
    DROP TABLE schema_fit;
    DROP TABLE bind; DROP TABLE bind_wish; DROP TABLE pool; ALTER TABLE carrier DROP COLUMN links_total;
    DELETE FROM schema_migration WHERE number >= 13";

const DEAD: SignedDuration = SignedDuration::from_secs(-1);
const LATER: &str = "CREATE TABLE later (number BIGINT NOT NULL)";
const LATER_STILL: &str = "CREATE TABLE later_still (number BIGINT NOT NULL)";
const STEPS: &str = "SELECT number, oldest FROM schema_fit ORDER BY number";

/// The schema of a program with one more migration.
fn newer(compatibility: Compatibility) -> Schema {
    Schema::current().followed_by("later", LATER, compatibility)
}

/// The schema of a program with two more migrations.
fn newest(first: Compatibility, second: Compatibility) -> Schema {
    newer(first).followed_by("later_still", LATER_STILL, second)
}

async fn try_open_as(database: &Database, schema: &Schema) -> Result<Arc<dyn Store>, OpenError> {
    let url = database.url().parse().expect("a valid URL");
    store::open_with(&url, &options(), schema).await
}

async fn open_as(database: &Database, schema: &Schema) -> Arc<dyn Store> {
    let opened = try_open_as(database, schema).await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

async fn refusal(database: &Database, schema: &Schema) -> String {
    let refused = try_open_as(database, schema).await;
    refused.err().expect("it is refused").to_string()
}

async fn an_older_program_works_after_a_compatible_migration(database: Database) {
    let old = database.open().await;
    let node = join(&old).await;
    drop(
        open_as(
            &database,
            &newest(Compatibility::Compatible, Compatibility::Compatible),
        )
        .await,
    );
    let steps = database.numbers(STEPS, 2).await;
    assert_eq!(renew_heartbeat(&old, node).await, HeartbeatResult::Alive);
    drop(old);

    let old = database.open().await;
    let node = join(&old).await;
    accept(&old, vec![due(1)]).await;
    assert_eq!(claim(&old, node).await.len(), 1);
    assert_eq!(renew_heartbeat(&old, node).await, HeartbeatResult::Alive);
    assert_eq!(
        database.numbers(STEPS, 2).await,
        steps,
        "an older program changes nothing"
    );
}

async fn an_older_program_is_refused_after_a_breaking_migration(database: Database) {
    for (case, schema) in [
        (
            "the last is breaking",
            newest(Compatibility::Compatible, Compatibility::Breaking),
        ),
        (
            "the one before is breaking",
            newest(Compatibility::Breaking, Compatibility::Compatible),
        ),
    ] {
        drop(database.open().await);
        drop(open_as(&database, &schema).await);
        let error = refusal(&database, &Schema::current()).await;
        assert!(error.contains("run the newer version"), "{case}: {error}");
        let undo = "DROP TABLE later; DROP TABLE later_still;
            DELETE FROM schema_fit WHERE number > (SELECT number FROM schema_migration WHERE name = '0014_nodes');
            DELETE FROM schema_migration WHERE name IN ('later', 'later_still')";
        database.execute(undo).await;
    }
}

async fn a_breaking_migration_waits_for_older_nodes(database: Database) {
    let old = database.open().await;
    let (dead, first, second) = (
        join_for(&old, DEAD).await,
        join(&old).await,
        join(&old).await,
    );
    let error = refusal(&database, &newer(Compatibility::Breaking)).await;
    for node in [first, second] {
        let description = format!("node {node} (version 1.2.3 on machine)");
        assert!(error.contains(&description), "{error}");
    }
    assert!(!error.contains(&format!("node {dead} ")), "{error}");
    assert!(error.contains("stop them and start again"), "{error}");
    // The migration was not applied, and running nodes still work.
    assert_eq!(renew_heartbeat(&old, first).await, HeartbeatResult::Alive);
    drop(database.open().await);

    for node in [first, second] {
        old.leave(node).await.expect("answers");
    }
    let new = open_as(&database, &newer(Compatibility::Breaking)).await;
    let node = join(&new).await;
    assert_eq!(renew_heartbeat(&new, node).await, HeartbeatResult::Alive);
    // Another node with the same schema neither waits nor migrates.
    drop(open_as(&database, &newer(Compatibility::Breaking)).await);
}

async fn a_compatible_migration_waits_for_no_node(database: Database) {
    let old = database.open().await;
    let node = join(&old).await;
    let new = open_as(&database, &newer(Compatibility::Compatible)).await;
    let [old, new] = [(old, node), (new.clone(), join(&new).await)];
    for (store, node) in [old, new] {
        assert_eq!(renew_heartbeat(&store, node).await, HeartbeatResult::Alive);
    }
}

/// A node may join while the migration is applied.
async fn a_node_learns_that_its_program_is_outdated(database: Database) {
    let old = database.open().await;
    let known = u32::try_from(Schema::current().level()).expect("a few");
    drop(
        open_as(
            &database,
            &newest(Compatibility::Breaking, Compatibility::Compatible),
        )
        .await,
    );
    let node = join(&old).await;
    let outdated = HeartbeatResult::Outdated {
        known,
        oldest: known + 1,
    };
    assert_eq!(renew_heartbeat(&old, node).await, outdated);
}

/// Older programs do not write the columns that describe a node.
async fn nodes_of_older_programs_are_distinguished(database: Database) {
    let store = database.open().await;
    let far = "INSERT INTO node (alive_until_us) VALUES (4000000000000000)";
    database.execute(far).await;
    let own = NodeInfo {
        works: false,
        ..info()
    };
    let own = store.join(&own, SignedDuration::ZERO, HOUR).await;
    let own = own.expect("joins");
    let nodes = store.list_nodes().await.expect("answers");
    let known: Vec<_> = nodes
        .iter()
        .map(|status| {
            (
                status.node == own,
                status.facts.as_ref().map(|it| it.info.works),
            )
        })
        .collect();
    assert_eq!(known, [(false, None), (true, Some(false))]);
    let error = refusal(&database, &newer(Compatibility::Breaking)).await;
    assert!(
        error.contains(&format!("node {},", nodes[0].node)),
        "{error}"
    );
}

/// A role with no other right than to read and write rows can open a current schema.
#[tokio::test]
async fn a_role_that_may_create_nothing_opens_a_current_schema() {
    let database = Database::postgres().await;
    drop(database.open().await);
    let name = format!("plain_{}", std::process::id());
    let role = format!(
        "CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}"
    );
    database.execute(&role).await;
    let url = as_role(&database, &name);
    let opened = store::open(&url, &options()).await;
    let store = opened.expect("there is nothing to create");
    let node = join(&store).await;
    let worked = (
        renew_heartbeat(&store, node).await,
        store.reserve_ids(1).await.is_ok(),
    );
    let refused = store::open_with(&url, &options(), &newer(Compatibility::Compatible)).await;
    drop(store);
    let clean = format!("DROP OWNED BY {name}; DROP ROLE {name}");
    database.execute(&clean).await;
    assert_eq!(worked, (HeartbeatResult::Alive, true));
    assert!(refused.is_err(), "a migration would fail");
}

/// The same database for another user.
pub(super) fn as_role(database: &Database, name: &str) -> DatabaseUrl {
    let url = database.url();
    let (_, host_and_path) = url.rsplit_once('@').expect("a URL with a user");
    let url = format!("postgres://{name}@{host_and_path}");
    url.parse().expect("a valid URL")
}
