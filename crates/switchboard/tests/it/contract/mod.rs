//! What both stores promise, as one suite that runs on each of them.
//!
//! A case is an `async fn` that takes a store on an empty database, or that database itself; a macro makes a test of it
//! for `SQLite` and one for `PostgreSQL`, called `sqlite::case` and `postgres::case`.

pub(crate) mod fixture;
pub(crate) mod sample;
pub(crate) mod way;

/// Makes two tests of each case that takes a store.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let database = crate::contract::fixture::Database::sqlite();
                super::$case(database.open().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let database = crate::contract::fixture::Database::postgres().await;
                super::$case(database.open().await).await;
            })+
        }
    };
}

/// Makes two tests of each case that takes a database.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::contract::fixture::Database::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::contract::fixture::Database::postgres().await).await;
            })+
        }
    };
}

/// Makes a test of each case that takes a database, called `serializable::case`: on `PostgreSQL` where a transaction sees
/// all that was there when it began and nothing since, so that the database asks for many to be repeated.
macro_rules! on_a_serializable_database {
    ($($case:ident),+ $(,)?) => {
        mod serializable {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::contract::fixture::Database::serializable().await).await;
            })+
        }
    };
}

/// Makes a test of each case that takes a database, called `pooled::case`: on `PostgreSQL` behind a pooler that lends a
/// connection for one transaction.
macro_rules! on_a_pooled_database {
    ($($case:ident),+ $(,)?) => {
        mod pooled {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::contract::fixture::Database::pooled()).await;
            })+
        }
    };
}

mod accepting;
mod access;
mod audit;
mod balances;
mod binds;
mod callbacks;
mod carriers;
mod catalogues;
mod codes;
mod columns;
mod days;
mod dispatch;
mod early_receipts;
mod encrypted;
mod folding;
mod handshake;
mod heartbeat;
mod held;
mod history;
mod idempotency;
mod last_use;
mod lookup_receipts;
mod lookups;
mod memberships;
mod messages;
mod model;
mod money;
mod money_at_once;
mod nodes;
mod noted;
mod oauth;
mod opening;
mod operations;
mod pages;
mod part_days;
mod parts;
mod people;
mod pools;
mod pruning;
mod receipt_matching;
mod receipts;
mod receiver_queues;
mod replay;
mod roles;
mod scheduled;
mod second_factor;
mod senders;
mod sessions;
mod shares;
mod sign_in;
mod taken_ids;
mod throttles;
mod traffic;
mod tries;
mod unreadable_callbacks;
