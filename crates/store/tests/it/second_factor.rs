//! The second factor, and sign-ins that wait for it.

use std::sync::Arc;

use domain::person::{RecoveryCode, TotpSecret};
use domain::ports::{Invitation, Purpose, SecondFactor, SecondProof, Store};
use domain::{PersonId, TokenHash};
use tokio::task::JoinSet;

use super::people::{credentials, email, find_signed_in, invite, member, password};
use super::sample::{at, create_account, hash};
use super::sign_in::session;

on_both_stores!(
    a_secret_counts_once_it_is_confirmed,
    a_step_and_a_recovery_code_open_one_session_each,
    attempts_are_limited_and_pending_sign_ins_expire,
    one_of_many_concurrent_uses_of_a_code_succeeds,
    new_recovery_codes_replace_the_old_ones,
    without_the_second_factor_a_pending_sign_in_fails,
    a_new_password_by_link_still_requires_the_second_factor,
);

const SECRET: TotpSecret = TotpSecret::new([7; 20]);

fn code(number: u8) -> TokenHash {
    RecoveryCode::new(&[number; 10]).hash()
}

/// Turns a person's second factor on: secret [`SECRET`], step 10 used, two recovery codes.
pub(super) async fn enable(store: &Arc<dyn Store>, person: PersonId) {
    let offered = store.offer_second_factor(person, &SECRET).await;
    assert!(offered.expect("answers"));
    let codes = [code(1), code(2)];
    let enabled = store.enable_second_factor(person, 10, &codes).await;
    assert!(enabled.expect("answers"));
}

async fn ann(store: &Arc<dyn Store>) -> PersonId {
    let account = create_account(store, "acme").await;
    member(store, "ann@example.com", account).await
}

async fn create_pending(store: &Arc<dyn Store>, person: PersonId, name: &str) {
    let opened = store
        .create_pending_sign_in(person, &hash(name), at(300), at(1))
        .await;
    opened.expect("it is pending");
}

async fn complete(store: &Arc<dyn Store>, pending: &str, proof: SecondProof, secret: &str) -> bool {
    let completed = store
        .complete_sign_in(&hash(pending), proof, &session(secret), None)
        .await;
    completed.expect("answers")
}

async fn a_secret_counts_once_it_is_confirmed(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    let find = || async { store.find_second_factor(ann).await.expect("answers") };
    assert_eq!(find().await, SecondFactor::default());
    let enabled = store.enable_second_factor(ann, 1, &[code(1)]).await;
    assert!(!enabled.expect("answers"), "no secret was offered");

    let other = TotpSecret::new([8; 20]);
    for secret in [&other, &SECRET] {
        let offered = store.offer_second_factor(ann, secret).await;
        assert!(offered.expect("answers"));
    }
    let offered = find().await;
    assert_eq!((offered.active, offered.offered), (None, Some(SECRET)));
    let before = credentials(&store, "ann@example.com").await.expect("ann");
    assert!(!before.has_second_factor, "not before it is confirmed");

    let enabled = store
        .enable_second_factor(ann, 10, &[code(1), code(2)])
        .await;
    assert!(enabled.expect("answers"));
    let active = SecondFactor {
        active: Some(SECRET),
        offered: None,
        last_step: 10,
        codes_left: 2,
    };
    assert_eq!(find().await, active);
    let now = credentials(&store, "ann@example.com").await.expect("ann");
    assert!(now.has_second_factor);
    let offered = store.offer_second_factor(ann, &other).await;
    assert!(!offered.expect("answers"), "it is on already");

    for expected in [true, false] {
        let disabled = store.disable_second_factor(ann).await;
        assert_eq!(disabled.expect("answers"), expected);
    }
    let off = find().await;
    assert_eq!((off.active, off.offered, off.codes_left), (None, None, 0));
}

async fn a_step_and_a_recovery_code_open_one_session_each(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    enable(&store, ann).await;
    let recovery = |number| SecondProof::Recovery(code(number));
    for (n, (name, proof, expected)) in [
        ("a step that was used", SecondProof::Step(10), false),
        ("an older step", SecondProof::Step(9), false),
        ("a later step", SecondProof::Step(12), true),
        ("the same again", SecondProof::Step(12), false),
        ("a recovery code", recovery(1), true),
        ("the same again", recovery(1), false),
        ("an unknown one", recovery(9), false),
        ("the other one", recovery(2), true),
    ]
    .into_iter()
    .enumerate()
    {
        let (pending, secret) = (format!("pending {n}"), format!("session {n}"));
        create_pending(&store, ann, &pending).await;
        let completed = complete(&store, &pending, proof, &secret).await;
        assert_eq!(completed, expected, "{n}: {name}");
        let opened = find_signed_in(&store, &secret).await;
        assert_eq!(opened.is_some(), expected, "{n}: {name}");
        let left = store.try_pending_sign_in(&hash(&pending), 5, at(2)).await;
        let left = left.expect("answers");
        assert_eq!(left.is_none(), expected, "{n}: {name}: still pending");
    }
    let factor = store.find_second_factor(ann).await.expect("answers");
    assert_eq!((factor.last_step, factor.codes_left), (12, 0));
    create_pending(&store, ann, "last").await;
    let replaced = hash("session 2");
    let proof = SecondProof::Step(13);
    let completed = store
        .complete_sign_in(&hash("last"), proof, &session("new"), Some(&replaced))
        .await;
    assert!(completed.expect("answers"));
    assert_eq!(
        find_signed_in(&store, "session 2").await,
        None,
        "the new session replaced it"
    );
}

async fn attempts_are_limited_and_pending_sign_ins_expire(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    enable(&store, ann).await;
    create_pending(&store, ann, "pending").await;
    for n in 0..5 {
        let attempted = store.try_pending_sign_in(&hash("pending"), 3, at(2)).await;
        let attempted = attempted.expect("answers");
        assert_eq!(attempted.is_some(), n < 3, "attempt {n}");
        if let Some(pending) = attempted {
            assert_eq!(pending.person.email, email("ann@example.com"));
            assert_eq!((pending.secret, pending.last_step), (SECRET, 10));
        }
    }
    create_pending(&store, ann, "late").await;
    for (name, second, expected) in [
        ("late", 299, true),
        ("late", 300, false),
        ("other", 2, false),
    ] {
        let attempted = store.try_pending_sign_in(&hash(name), 9, at(second)).await;
        assert_eq!(
            attempted.expect("answers").is_some(),
            expected,
            "{name} {second}"
        );
    }
    let mut late = session("too late");
    late.opened_at = at(300);
    let completed = store
        .complete_sign_in(&hash("late"), SecondProof::Step(20), &late, None)
        .await;
    assert!(!completed.expect("answers"));
    assert_eq!(
        find_signed_in(&store, "late").await,
        None,
        "a pending sign-in is no session"
    );
}

async fn one_of_many_concurrent_uses_of_a_code_succeeds(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    enable(&store, ann).await;
    for (kind, proof) in [
        ("step", SecondProof::Step(20)),
        ("recovery", SecondProof::Recovery(code(1))),
    ] {
        let mut tasks = JoinSet::new();
        for n in 0..10 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let pending = format!("{kind} {n}");
                create_pending(&store, ann, &pending).await;
                complete(&store, &pending, proof, &format!("session {pending}")).await
            });
        }
        let opened = tasks.join_all().await;
        let opened = opened.into_iter().filter(|opened| *opened).count();
        assert_eq!(opened, 1, "{kind}");
    }
}

async fn new_recovery_codes_replace_the_old_ones(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    let replaced = store.replace_recovery_codes(ann, &[code(9)]).await;
    assert!(
        !replaced.expect("answers"),
        "without the second factor there are none"
    );
    enable(&store, ann).await;
    let codes = [code(3), code(4), code(5)];
    let replaced = store.replace_recovery_codes(ann, &codes).await;
    assert!(replaced.expect("answers"));
    let factor = store.find_second_factor(ann).await.expect("answers");
    assert_eq!(factor.codes_left, 3);
    for (number, expected) in [(1, false), (3, true)] {
        let pending = format!("pending {number}");
        create_pending(&store, ann, &pending).await;
        let proof = SecondProof::Recovery(code(number));
        assert_eq!(
            complete(&store, &pending, proof, &pending).await,
            expected,
            "{number}"
        );
    }
}

async fn without_the_second_factor_a_pending_sign_in_fails(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    enable(&store, ann).await;
    create_pending(&store, ann, "pending").await;
    let disabled = store.disable_second_factor(ann).await;
    assert!(disabled.expect("answers"));
    let attempted = store.try_pending_sign_in(&hash("pending"), 5, at(2)).await;
    assert_eq!(attempted.expect("answers"), None);
    assert!(!complete(&store, "pending", SecondProof::Step(20), "session").await);
}

async fn a_new_password_by_link_still_requires_the_second_factor(store: Arc<dyn Store>) {
    let ann = ann(&store).await;
    enable(&store, ann).await;
    let again = Invitation {
        email: email("ann@example.com"),
        purpose: Purpose::NewPassword(ann),
    };
    invite(&store, &again, "again").await;
    let redeemed = store
        .redeem_invitation(
            &hash("again"),
            &password("second"),
            &session("new"),
            at(300),
            false,
        )
        .await;
    let redeemed = redeemed.expect("answers").expect("a good link");
    assert_eq!((redeemed.person, redeemed.needs_second_factor), (ann, true));
    assert_eq!(find_signed_in(&store, "new").await, None, "no session yet");
    assert_eq!(
        find_signed_in(&store, "ann@example.com").await,
        None,
        "the old session ended"
    );
    assert!(complete(&store, "new", SecondProof::Step(11), "opened").await);
    assert!(find_signed_in(&store, "opened").await.is_some());
}
