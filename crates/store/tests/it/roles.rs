//! Lists of people and invitations, and changes of roles.

use std::sync::Arc;

use domain::ports::{Invitation, InvitationRecord, PersonChanged, PersonRecord, Purpose, Store};
use domain::{AccountId, PersonId, Role};
use tokio::task::JoinSet;

use super::people::{accept, credentials, email, find_signed_in, invite, join, member, password};
use super::sample::{at, create_account, hash};
use super::sign_in::session;

on_both_stores!(
    people_are_listed_by_account_and_page,
    invitations_are_listed_while_they_work_and_can_be_withdrawn,
    a_role_changes_with_its_account,
    a_removed_person_loses_all_access,
    the_last_operator_stays,
    one_of_two_operators_who_remove_each_other_stays,
    changing_the_own_password_keeps_one_session,
);

async fn list(
    store: &Arc<dyn Store>,
    account: Option<AccountId>,
    after: Option<PersonId>,
    limit: u32,
) -> Vec<PersonRecord> {
    let listed = store.list_people(account, after, limit).await;
    listed.expect("answers")
}

async fn operator(store: &Arc<dyn Store>, address: &str) -> PersonId {
    invite(store, &join(address, Role::Operator, None), address).await;
    accept(store, address, "first").await.expect("a good link")
}

async fn people_are_listed_by_account_and_page(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let ann = member(&store, "ann@example.com", acme).await;
    let zoe = member(&store, "zoe@example.com", other).await;
    let bob = member(&store, "bob@example.com", acme).await;
    let op = operator(&store, "op@example.com").await;
    for (name, account, after, limit, expected) in [
        ("all", None, None, 9, vec![ann, zoe, bob, op]),
        ("an account", Some(acme), None, 9, vec![ann, bob]),
        ("the first", None, None, 2, vec![ann, zoe]),
        ("the next", None, Some(zoe), 2, vec![bob, op]),
        ("after the last", None, Some(op), 2, vec![]),
        (
            "the next of an account",
            Some(acme),
            Some(ann),
            2,
            vec![bob],
        ),
    ] {
        let listed = list(&store, account, after, limit).await;
        let ids: Vec<PersonId> = listed.iter().map(|record| record.person.id).collect();
        assert_eq!(ids, expected, "{name}");
    }
    let [record] = &list(&store, Some(other), None, 9).await[..] else {
        panic!("one person");
    };
    assert_eq!(record.person.email, email("zoe@example.com"));
    assert_eq!((record.created_at, record.seen_at), (at(1), Some(at(1))));
    assert!(!record.has_second_factor);
    let found = store.find_person(zoe).await.expect("answers");
    assert_eq!(found.as_ref(), Some(record));
    let nobody = PersonId::new(999).expect("an ID");
    assert_eq!(store.find_person(nobody).await.expect("answers"), None);
}

async fn invitations_are_listed_while_they_work_and_can_be_withdrawn(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    let bob = join("bob@example.com", Role::Admin, Some(acme));
    let again = Invitation {
        email: email("ann@example.com"),
        purpose: Purpose::NewPassword(ann),
    };
    let op = join("op@example.com", Role::Operator, None);
    for invitation in [&bob, &again, &op] {
        invite(&store, invitation, invitation.email.as_str()).await;
    }
    let record = |invitation: &Invitation, account| InvitationRecord {
        invitation: invitation.clone(),
        account,
        expires: at(60),
    };
    let (ann, bob, op) = (
        record(&again, Some(acme)),
        record(&bob, Some(acme)),
        record(&op, None),
    );
    for (name, account, limit, second, expected) in [
        ("all", None, 9, 1, vec![&ann, &bob, &op]),
        ("about an account", Some(acme), 9, 1, vec![&ann, &bob]),
        ("one", None, 1, 1, vec![&ann]),
        ("expired", None, 9, 60, vec![]),
    ] {
        let listed = store.list_invitations(account, limit, at(second)).await;
        let listed = listed.expect("answers");
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{name}");
    }
    let address = email("bob@example.com");
    for expected in [true, false] {
        let withdrawn = store.withdraw_invitations(&address, None).await;
        assert_eq!(withdrawn.expect("answers"), expected);
    }
    assert_eq!(accept(&store, "bob@example.com", "x").await, None);
    let left = store.list_invitations(None, 9, at(1)).await;
    assert_eq!(left.expect("answers"), [ann, op]);
}

async fn a_role_changes_with_its_account(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let ann = member(&store, "ann@example.com", acme).await;
    for (role, account) in [
        (Role::Admin, Some(acme)),
        (Role::Member, Some(other)),
        (Role::Operator, None),
    ] {
        let changed = store.set_role(ann, role, account, at(3)).await;
        assert_eq!(changed.expect("answers"), PersonChanged::Done);
        let signed_in = find_signed_in(&store, "ann@example.com")
            .await
            .expect("signed in");
        assert_eq!((signed_in.role(), signed_in.account()), (role, account));
    }
    let nobody = PersonId::new(999).expect("an ID");
    let changed = store
        .set_role(nobody, Role::Member, Some(acme), at(3))
        .await;
    assert_eq!(changed.expect("answers"), PersonChanged::Unknown);
}

async fn a_removed_person_loses_all_access(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    member(&store, "bob@example.com", acme).await;
    let again = Invitation {
        email: email("ann@example.com"),
        purpose: Purpose::NewPassword(ann),
    };
    invite(&store, &again, "again").await;
    super::second_factor::enable(&store, ann).await;
    let pending = store
        .create_pending_sign_in(ann, &hash("pending"), at(300), at(1))
        .await;
    pending.expect("it is pending");

    let removed = store.remove_person(ann, at(3)).await.expect("answers");
    assert_eq!(removed, PersonChanged::Done);
    assert_eq!(find_signed_in(&store, "ann@example.com").await, None);
    assert_eq!(credentials(&store, "ann@example.com").await, None);
    assert_eq!(accept(&store, "again", "x").await, None);
    let attempted = store.try_pending_sign_in(&hash("pending"), 5, at(2)).await;
    assert_eq!(attempted.expect("answers"), None);
    assert!(find_signed_in(&store, "bob@example.com").await.is_some());
    let removed = store.remove_person(ann, at(3)).await.expect("answers");
    assert_eq!(removed, PersonChanged::Unknown);
    let back = member(&store, "ann@example.com", acme).await;
    assert_ne!(back, ann, "the address can be used again, the ID cannot");
}

async fn the_last_operator_stays(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    member(&store, "ann@example.com", acme).await;
    let one = operator(&store, "one@example.com").await;
    let last = PersonChanged::LastOperator;
    let demoted = store.set_role(one, Role::Admin, Some(acme), at(3)).await;
    assert_eq!(demoted.expect("answers"), last);
    assert_eq!(
        store.remove_person(one, at(3)).await.expect("answers"),
        last
    );
    let moved = store.set_role(one, Role::Operator, Some(acme), at(3)).await;
    assert_eq!(moved.expect("answers"), PersonChanged::Done);
    assert!(find_signed_in(&store, "one@example.com").await.is_some());

    let two = operator(&store, "two@example.com").await;
    let demoted = store.set_role(one, Role::Admin, Some(acme), at(3)).await;
    assert_eq!(demoted.expect("answers"), PersonChanged::Done);
    assert_eq!(
        store.remove_person(two, at(3)).await.expect("answers"),
        last
    );
}

async fn one_of_two_operators_who_remove_each_other_stays(store: Arc<dyn Store>) {
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for name in ["one", "two"] {
            let id = operator(&store, &format!("{name}{round}@example.com")).await;
            let store = Arc::clone(&store);
            tasks.spawn(async move { store.remove_person(id, at(3)).await.expect("answers") });
        }
        tasks.join_all().await;
        let left = list(&store, None, None, 99).await;
        let operators = left
            .iter()
            .filter(|record| record.person.role == Role::Operator);
        assert!(operators.count() >= 1, "round {round}");
    }
}

async fn changing_the_own_password_keeps_one_session(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    member(&store, "bob@example.com", acme).await;
    let opened = store.open_session(ann, &session("second"), None).await;
    opened.expect("the session opens");
    let (own, second) = (password("own"), hash("second"));
    let set = store.set_password(ann, &own, &second, None).await;
    assert!(set.expect("answers"));
    let ann_now = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(ann_now.password, password("own"));
    for (secret, expected) in [
        ("ann@example.com", false),
        ("second", true),
        ("bob@example.com", true),
    ] {
        assert_eq!(
            find_signed_in(&store, secret).await.is_some(),
            expected,
            "{secret}"
        );
    }
    let nobody = PersonId::new(999).expect("an ID");
    let set = store.set_password(nobody, &own, &second, None).await;
    assert!(!set.expect("answers"));
}
