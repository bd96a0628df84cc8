//! The contract of the stores: one suite that runs on both databases, and in part on the store in memory.
//!
//! A case is an `async fn` that takes a store on an empty database, or the database itself. A macro turns it into one
//! test for `SQLite`, called `sqlite::case`, and one for `PostgreSQL`, called `postgres::case`. A case that takes a
//! `WorkStore` also runs on the store that the simulation of the engine uses, as `memory::case`.

mod fixture;
mod sample;
mod steps;

/// The tests of one database: cases that take a store, then cases that take the database.
macro_rules! on_database {
    ($database:expr; $($case:ident)*; $($database_case:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let database = $database;
            super::$case(database.open().await).await;
        })*

        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $database_case() {
            super::$database_case($database).await;
        })*
    };
}

/// Turns each case that takes a `WorkStore` into three tests. Cases that cannot run in memory follow, in lists with the
/// names of their macros; then cases that take a `WorkStore` and cannot run on `SQLite`.
macro_rules! on_every_store {
    (
        $($case:ident),+ $(,)?
        $(; on_both_stores: $($store_case:ident),+ $(,)?)?
        $(; on_both_databases: $($database_case:ident),+ $(,)?)?
        $(; not_on_sqlite: $($server_case:ident),+ $(,)?)?
    ) => {
        mod sqlite {
            on_database!(
                crate::fixture::Database::sqlite();
                $($case)+ $($($store_case)+)?; $($($database_case)+)?
            );
        }

        mod postgres {
            on_database!(
                crate::fixture::Database::postgres().await;
                $($case)+ $($($store_case)+)? $($($server_case)+)?; $($($database_case)+)?
            );
        }

        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::fixture::memory_store()).await;
            })+

            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $server_case() {
                super::$server_case(crate::fixture::memory_store()).await;
            })+)?
        }
    };
}

/// Turns each case that takes a store into two tests.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            on_database!(crate::fixture::Database::sqlite(); $($case)+;);
        }

        mod postgres {
            on_database!(crate::fixture::Database::postgres().await; $($case)+;);
        }
    };
}

/// Turns each case that takes a database into two tests.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            on_database!(crate::fixture::Database::sqlite();; $($case)+);
        }

        mod postgres {
            on_database!(crate::fixture::Database::postgres().await;; $($case)+);
        }
    };
}

/// Turns each case that takes a database into a test called `serializable::case`, on `PostgreSQL` with serializable
/// transactions, so that the database asks for many of them to be repeated.
macro_rules! on_a_serializable_database {
    ($($case:ident),+ $(,)?) => {
        mod serializable {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::fixture::Database::serializable().await).await;
            })+
        }
    };
}

/// Turns each case that takes a database, or a store, into a test called `pooled::case`, on `PostgreSQL` behind a pooler
/// that lends a connection for one transaction.
macro_rules! on_a_pooled_database {
    ($($case:ident),+ $(,)? $(; with_a_store: $($store_case:ident),+ $(,)?)?) => {
        mod pooled {
            on_database!(crate::fixture::Database::pooled(); $($($store_case)+)?; $($case)+);
        }
    };
}

mod accepting;
mod access;
mod alerts;
mod attempts;
mod audit;
mod audit_actions;
mod balances;
mod binds;
mod callbacks;
mod carriers;
mod catalogues;
mod codes;
mod columns;
mod concurrent_charges;
mod day_statements;
mod days;
mod dispatch;
mod duplicate_ids;
mod early_receipts;
mod encrypted;
mod exports;
mod folding;
mod handshake;
mod heartbeat;
mod held;
mod history;
mod idempotency;
mod inbound;
mod inbound_privacy;
mod last_use;
mod lookup_receipts;
mod lookups;
mod memberships;
mod messages;
mod model;
mod money;
mod monitoring;
mod nodes;
mod oauth;
mod older_schema;
mod opening;
mod operations;
mod opt_outs;
mod pages;
mod part_days;
mod parts;
mod people;
mod plans;
mod polls;
mod pools;
mod ported;
mod privacy;
mod pruning;
mod receipt_matching;
mod receipts;
mod receiver_queues;
mod refunds;
mod refused;
mod replacing;
mod replay;
mod replies;
mod request_log;
mod roles;
mod scheduled;
mod second_factor;
mod senders;
mod sessions;
mod shares;
mod sign_in;
mod smpp_sessions;
mod smpp_users;
mod spending_rule;
mod templates;
mod throttles;
mod traces;
mod traffic;
mod unreadable_callbacks;
mod verify;
