//! Batches that fail in part.

use std::sync::Arc;

use domain::billing::SpendingRules;
use domain::ports::{Accepted, Store, StoreError};

use super::fixture::Database;
use super::money::{assert_balanced, balance, priced};
use super::sample::{accept, create_account, message, submission};

on_both_databases!(an_error_means_neither_stored_nor_charged);

/// On `PostgreSQL`, an account with a limit per recipient has its own transaction. When it fails, the submissions of
/// other accounts are stored, and their results say so.
async fn an_error_means_neither_stored_nor_charged(database: Database) {
    let store = database.open().await;
    let plain = create_account(&store, "plain").await;
    let limited = create_account(&store, "limited").await;
    let rules = SpendingRules {
        per_recipient_hour: Some(10),
        ..SpendingRules::default()
    };
    store
        .set_rules(limited, None, &rules)
        .await
        .expect("answers");
    let before = balance(&store, plain).await;
    assert_eq!(balance(&store, limited).await, before);
    let batch = vec![
        priced(submission(1, 2), plain, 1_000),
        priced(submission(3, 1), limited, 1_000),
        priced(submission(4, 1), plain, 1_000),
    ];
    database
        .execute("ALTER TABLE recipient_sent RENAME TO recipient_sent_renamed")
        .await;
    let results = store.accept(Arc::new(batch.clone())).await;
    assert_eq!(results.len(), batch.len());
    let mut spent = 0;
    for (submission, result) in batch.iter().zip(&results) {
        let id = submission.recipients[0].id.get();
        let is_stored = result.is_ok();
        assert_eq!(
            exists(&store, submission.account, id).await,
            is_stored,
            "{id}"
        );
        if is_stored {
            spent += submission.cost().micros();
        }
    }
    let error = results[1].as_ref().expect_err("its table is missing");
    assert!(
        matches!(**error, StoreError::Unexpected { .. }),
        "{error:?}"
    );
    if let Database::Postgres(_) = database {
        assert_eq!(spent, 3_000, "the first transaction is committed");
    }
    assert_eq!(balance(&store, plain).await, before - spent);
    assert_eq!(balance(&store, limited).await, before);
    assert_balanced(&store).await;

    database
        .execute("ALTER TABLE recipient_sent_renamed RENAME TO recipient_sent")
        .await;
    let again = vec![priced(submission(11, 1), limited, 1_000)];
    assert_eq!(accept(&store, again).await, [Accepted::Stored]);
    assert_eq!(balance(&store, limited).await, before - 1_000);
}

async fn exists(store: &Arc<dyn Store>, owner: domain::AccountId, id: u64) -> bool {
    let found = store.find_message(owner, message(id)).await;
    found.expect("the store answers").is_some()
}
