//! Confirmation codes: limited by number and by account, with texts that only the sender of the message can read.

use std::sync::Arc;

use domain::code_cap::CodeCapReached;
use domain::message::Submission;
use domain::message::code_text::SHOWN;
use domain::ports::{NewSender, Registered, SenderFilter, Store};
use domain::sender::{Pin, SenderKind, SenderName, SenderState};
use domain::{AccountId, Outcome};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::fixture::Database;
use super::sample::{EVERYTHING, accept, at, create_account, message};
use super::steps::{
    claim_callbacks, due, first_result, held, join, receipt, report, settle, taken, url,
};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// A number that gets a PIN.
pub(super) fn number(account: AccountId, number: &str, second: i64) -> NewSender {
    let pin: Pin = "54321".parse().expect("five digits");
    NewSender {
        account,
        name: SenderName::parse(SenderKind::Msisdn, number).expect("a number"),
        category: None,
        description: None,
        notification_url: None,
        pin: Some(pin.hash([3; 16])),
        created_at: at(second),
    }
}

async fn register(store: &Arc<dyn Store>, sender: &NewSender) -> Registered {
    let registered = store.register_sender(sender).await;
    registered.expect("the store answers")
}

fn capped(second: i64) -> Registered {
    Registered::CodeCapReached(CodeCapReached { until: at(second) })
}

const BANK: &str = "+37120000001";

async fn codes_to_a_number_are_limited_across_accounts(store: Arc<dyn Store>) {
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        accounts.push(create_account(&store, name).await);
    }
    for (second, account) in (0..).zip(&accounts[..5]) {
        let registered = register(&store, &number(*account, BANK, second)).await;
        assert!(matches!(registered, Registered::New(_)), "{registered:?}");
    }
    let last = accounts[5];
    let refused = register(&store, &number(last, BANK, 10)).await;
    assert_eq!(refused, capped(HOUR));
    let filter = SenderFilter {
        account: Some(last),
        ..SenderFilter::default()
    };
    let listed = store.list_senders(filter, EVERYTHING).await;
    assert_eq!(listed.expect("answers"), [], "the number is not registered");
    let renewed = register(&store, &number(accounts[0], BANK, 100)).await;
    assert_eq!(renewed, capped(HOUR), "a new PIN counts as well");
    let elsewhere = register(&store, &number(last, "+37120000002", 10)).await;
    assert!(matches!(elsewhere, Registered::New(_)), "{elsewhere:?}");

    for second in 0..5 {
        let again = number(
            accounts[usize::try_from(second).expect("small")],
            BANK,
            HOUR + second,
        );
        let renewed = register(&store, &again).await;
        assert!(matches!(renewed, Registered::PinAgain(_)), "{renewed:?}");
    }
    let refused = register(&store, &number(last, BANK, 3 * HOUR)).await;
    assert_eq!(refused, capped(DAY), "ten in a day");
    let next_day = register(&store, &number(last, BANK, DAY)).await;
    assert!(matches!(next_day, Registered::New(_)), "{next_day:?}");
}

async fn concurrent_codes_are_counted(store: Arc<dyn Store>) {
    const ACCOUNTS: usize = 12;
    let mut tasks = JoinSet::new();
    for n in 0..ACCOUNTS {
        let account = create_account(&store, &format!("account {n}")).await;
        let store = store.clone();
        tasks.spawn(async move { register(&store, &number(account, BANK, 0)).await });
    }
    let registered = tasks.join_all().await;
    let is_new = |registered: &&Registered| matches!(registered, Registered::New(_));
    assert_eq!(
        registered.iter().filter(is_new).count(),
        5,
        "{registered:?}"
    );
}

async fn an_account_has_a_daily_limit(database: Database) {
    let store = database.open().await;
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let limit = "UPDATE account SET codes_per_day = 3 WHERE name = 'acme'";
    database.execute(limit).await;
    let to = |n: i64| format!("+3712000000{n}");
    for n in 0..3 {
        let registered = register(&store, &number(acme, &to(n), n)).await;
        assert!(matches!(registered, Registered::New(_)), "{registered:?}");
    }
    let refused = register(&store, &number(acme, &to(3), 3)).await;
    assert_eq!(refused, capped(DAY));
    let others = register(&store, &number(other, &to(3), 3)).await;
    assert!(matches!(others, Registered::New(_)), "{others:?}");

    let pruned = store.prune_codes(at(0), 10).await;
    assert_eq!(
        pruned.expect("answers"),
        1,
        "only what is at least a day old"
    );
    let registered = register(&store, &number(acme, &to(4), 4)).await;
    assert!(matches!(registered, Registered::New(_)), "{registered:?}");
}

async fn a_code_that_was_not_sent_does_not_count(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    for second in 0..8 {
        let sender = number(acme, BANK, second);
        let id = match register(&store, &sender).await {
            Registered::New(id) | Registered::PinAgain(id) => id,
            other => panic!("{second}: {other:?}"),
        };
        let pin = sender.pin.expect("a PIN");
        store.withdraw_pin(id, &pin).await.expect("answers");
    }
}

async fn unconfirmed_numbers_are_rejected(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let with_url = NewSender {
        notification_url: Some(url("https://example.com/senders")),
        ..number(acme, BANK, 0)
    };
    for sender in [with_url, number(acme, "+37120000002", 60)] {
        register(&store, &sender).await;
    }
    let expire = async |second| {
        let expired = store.expire_senders(at(second), "too late", at(DAY), 10);
        expired.await.expect("answers")
    };
    assert_eq!(expire(-1).await, 0);
    assert_eq!(expire(0).await, 1);
    let listed = store
        .list_senders(SenderFilter::default(), EVERYTHING)
        .await;
    let listed = listed.expect("answers");
    let states: Vec<_> = listed.iter().map(|sender| sender.state).collect();
    let expected = [SenderState::Rejected, SenderState::AwaitingConfirmation];
    assert_eq!(states, expected);
    assert_eq!(listed[0].reason.as_deref(), Some("too late"));
    let node = join(&store).await;
    assert_eq!(
        claim_callbacks(&store, node).await.len(),
        1,
        "the account is notified"
    );
    let again = register(&store, &number(acme, BANK, DAY)).await;
    assert!(matches!(again, Registered::New(_)), "{again:?}");
}

const PIN_TEXT: &str = "12345 is your code";

/// A message that carries a code.
fn coded(submission: Submission) -> Submission {
    Submission {
        carries_code: true,
        text: PIN_TEXT.to_owned(),
        ..submission
    }
}

async fn only_the_sender_of_a_message_reads_its_code(store: Arc<dyn Store>) {
    let node = join(&store).await;
    // Other messages are stored with it, some by the same statement.
    accept(&store, vec![due(1), coded(due(2)), due(3)]).await;
    let claimed = store.claim_due(node, [10; 3], &[]).await.expect("answers");
    let texts: Vec<_> = claimed
        .messages
        .iter()
        .map(|queued| queued.text.as_str())
        .collect();
    assert_eq!(texts, ["Your code is 1234", PIN_TEXT, "Your code is 1234"]);
    let found = store.find_message_detail(None, message(2)).await;
    let found = found.expect("answers").expect("a message");
    assert_eq!(found.summary.text, SHOWN);
}

async fn a_code_is_not_readable_in_the_database(database: Database) {
    let store = database.open().await;
    join(&store).await;
    accept(&store, vec![coded(due(1))]).await;
    for (column, table) in [("body", "message"), ("text", "code_text")] {
        let find = match database {
            Database::Sqlite(_) => format!("instr({column}, X'3132333435')"),
            Database::Postgres(_) => format!("position('12345'::bytea IN {column})::bigint"),
        };
        let found = database
            .numbers(&format!("SELECT {find} FROM {table}"), 1)
            .await;
        assert_eq!(found, [[Some(0)]], "{table}");
    }
    // A text that was changed in the database is not sent.
    database
        .execute("UPDATE code_text SET text = substr(text, 1, 50)")
        .await;
    let node = join(&store).await;
    let claimed = store.claim_due(node, [10; 3], &[]).await.expect("answers");
    assert_eq!((claimed.messages.len(), claimed.set_aside.len()), (0, 1));
}

async fn texts_of_codes_are_deleted_after_the_message_ended(database: Database) {
    const STORED: &str = "SELECT message_id FROM code_text ORDER BY message_id";
    let store = database.open().await;
    let node = join(&store).await;
    let prune = async |inbox, age| {
        let age = SignedDuration::from_hours(age);
        let pruned = store.prune_code_texts(inbox, age, 10).await;
        pruned.expect("answers")
    };
    for (id, reference) in [(1, "a"), (2, "b")] {
        accept(&store, vec![coded(held(id, node))]).await;
        let taken = first_result(id, taken(&[reference]));
        settle(&store, node, vec![taken]).await;
    }
    assert_eq!(prune("alpha", 1).await, 0, "both are in transit");
    report(&store, node, vec![receipt("a", Outcome::Delivered)]).await;
    let to = held(1, node).recipients[0].to;
    let inbox = store.list_inbox("alpha", &to, 10).await.expect("answers");
    assert_eq!(inbox[0].text, PIN_TEXT);
    assert_eq!(
        prune("alpha", 24 * 365 * 100).await,
        0,
        "the simulated handset still shows it"
    );
    assert_eq!(
        prune("beta", 24 * 365 * 100).await,
        1,
        "the handset of another carrier does not"
    );
    assert_eq!(database.numbers(STORED, 1).await, [[Some(2)]]);
    report(&store, node, vec![receipt("b", Outcome::Delivered)]).await;
    assert_eq!(prune("alpha", 0).await, 1, "it is old enough");
    let inbox = store.list_inbox("alpha", &to, 10).await.expect("answers");
    assert_eq!(inbox[0].text, SHOWN);
}

on_both_stores!(
    codes_to_a_number_are_limited_across_accounts,
    concurrent_codes_are_counted,
    a_code_that_was_not_sent_does_not_count,
    unconfirmed_numbers_are_rejected,
    only_the_sender_of_a_message_reads_its_code,
);
mod databases {
    use super::{
        a_code_is_not_readable_in_the_database, an_account_has_a_daily_limit,
        texts_of_codes_are_deleted_after_the_message_ended,
    };

    on_both_databases!(
        a_code_is_not_readable_in_the_database,
        an_account_has_a_daily_limit,
        texts_of_codes_are_deleted_after_the_message_ended,
    );
}
