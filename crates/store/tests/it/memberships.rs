//! People who belong to several accounts.

use std::sync::Arc;

use domain::person::Membership;
use domain::ports::{Invitation, Joining, PersonChanged, Purpose, Store};
use domain::{AccountId, PersonId, Role};

use super::oauth::{approve_as, opens, redeem};
use super::people::{accept, credentials, email, invite, join, member, whose};
use super::sample::{at, create_account, hash};
use super::sign_in::session;

on_both_stores!(
    two_accounts_invite_the_same_address,
    an_invitation_gives_a_further_account_to_its_person_alone,
    a_session_goes_on_with_another_account,
    an_admin_changes_what_somebody_may_do_in_one_account,
    an_account_is_left_with_its_sessions_and_grants,
    whoever_leaves_their_last_account_is_gone,
    an_operator_stays_one_everywhere,
    joining_ends_links_for_a_new_password,
);

/// Accepts the invitation `link` with the session `session`, which goes on as `renewed`.
async fn join_by(
    store: &Arc<dyn Store>,
    person: PersonId,
    link: &str,
    session: &str,
    renewed: &str,
) -> bool {
    let joining = Joining {
        link: hash(link),
        person,
        session: hash(session),
        renewed: hash(renewed),
        now: at(1),
    };
    store.join_account(&joining).await.expect("answers")
}

/// Two accounts, and somebody who belongs to the first as a member and to the second as an admin. Their session is
/// `NAME there`, in the second.
async fn of_both(store: &Arc<dyn Store>, name: &str) -> (AccountId, AccountId, PersonId) {
    let address = format!("{name}@example.com");
    let acme = create_account(store, &format!("acme of {name}")).await;
    let other = create_account(store, &format!("other of {name}")).await;
    let person = member(store, &address, acme).await;
    let link = format!("link of {name}");
    invite(store, &join(&address, Role::Admin, Some(other)), &link).await;
    let there = format!("{name} there");
    assert!(join_by(store, person, &link, &address, &there).await);
    (acme, other, person)
}

/// The account and the role of a session.
async fn place(store: &Arc<dyn Store>, secret: &str) -> Option<(Option<AccountId>, Role)> {
    let signed_in = whose(store, secret).await?;
    Some((signed_in.account(), signed_in.role()))
}

async fn switch(store: &Arc<dyn Store>, from: &str, to: &str, account: AccountId) -> bool {
    let switched = store.switch_account(&hash(from), &hash(to), account).await;
    switched.expect("answers")
}

async fn list(store: &Arc<dyn Store>, account: AccountId) -> Vec<(PersonId, Role)> {
    let people = store.list_people(Some(account), None, 9).await;
    let people = people.expect("answers").into_iter();
    people
        .map(|record| {
            assert_eq!(record.person.account, Some(account));
            (record.person.id, record.person.role)
        })
        .collect()
}

async fn two_accounts_invite_the_same_address(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    for (account, link) in [(acme, "acme"), (other, "early"), (other, "late")] {
        invite(
            &store,
            &join("ann@example.com", Role::Member, Some(account)),
            link,
        )
        .await;
    }
    for (link, works) in [("acme", true), ("early", false), ("late", true)] {
        let found = store.find_invitation(&hash(link), at(1)).await;
        assert_eq!(found.expect("answers").is_some(), works, "{link}");
    }
    let address = email("ann@example.com");
    let withdrawn = store.withdraw_invitations(&address, Some(other)).await;
    assert!(withdrawn.expect("answers"));
    let left = store.list_invitations(None, 9, at(1)).await;
    let left = left.expect("answers");
    let left: Vec<_> = left.iter().map(|record| record.account).collect();
    assert_eq!(
        left,
        [Some(acme)],
        "one account's is the other's no business"
    );
}

async fn an_invitation_gives_a_further_account_to_its_person_alone(store: Arc<dyn Store>) {
    let (acme, other, ann) = of_both(&store, "ann").await;
    let bob = member(&store, "bob@example.com", acme).await;
    assert_eq!(
        place(&store, "ann@example.com").await,
        None,
        "the session has another secret"
    );
    assert_eq!(
        place(&store, "ann there").await,
        Some((Some(other), Role::Admin))
    );
    let further = Membership {
        person: ann,
        account: other,
        role: Role::Admin,
        seen_at: None,
    };
    let listed = store.list_memberships(ann, bob).await;
    assert_eq!(listed.expect("answers"), [further]);
    assert_eq!(
        list(&store, acme).await,
        [(ann, Role::Member), (bob, Role::Member)]
    );
    assert_eq!(list(&store, other).await, [(ann, Role::Admin)]);
    let kept = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(
        kept.person.account,
        Some(acme),
        "she sees the first one first"
    );

    assert!(
        !join_by(&store, ann, "link of ann", "ann there", "again").await,
        "a used link"
    );
    invite(
        &store,
        &join("cid@example.com", Role::Admin, Some(other)),
        "cid",
    )
    .await;
    assert!(
        !join_by(&store, bob, "cid", "bob@example.com", "x").await,
        "for another"
    );
    assert_eq!(list(&store, other).await, [(ann, Role::Admin)]);
    assert!(
        accept(&store, "cid", "kept").await.is_some(),
        "it is still good"
    );
}

async fn a_session_goes_on_with_another_account(store: Arc<dyn Store>) {
    let (acme, other, ann) = of_both(&store, "ann").await;
    let third = create_account(&store, "third").await;
    assert!(
        !switch(&store, "ann there", "x", third).await,
        "none of hers"
    );
    assert!(!switch(&store, "nobody", "x", acme).await, "no session");
    assert!(switch(&store, "ann there", "back", acme).await);
    assert_eq!(place(&store, "ann there").await, None);
    assert_eq!(
        place(&store, "back").await,
        Some((Some(acme), Role::Member))
    );
    assert!(switch(&store, "back", "again", other).await);
    assert_eq!(
        place(&store, "again").await,
        Some((Some(other), Role::Admin))
    );

    store
        .touch_session(&hash("again"), at(50))
        .await
        .expect("touched");
    let listed = store.list_memberships(ann, ann).await.expect("answers");
    assert_eq!(listed[0].seen_at, Some(at(50)));
    let first = store.find_person(ann).await.expect("answers").expect("ann");
    assert_eq!(
        first.seen_at,
        Some(at(1)),
        "the first account is told nothing of it"
    );
}

async fn an_admin_changes_what_somebody_may_do_in_one_account(store: Arc<dyn Store>) {
    let (acme, other, ann) = of_both(&store, "ann").await;
    let third = create_account(&store, "third").await;
    for (account, role, expected) in [
        (acme, Role::Admin, PersonChanged::Done),
        (other, Role::Member, PersonChanged::Done),
        (third, Role::Admin, PersonChanged::Unknown),
    ] {
        let changed = store.set_role_in(ann, account, role).await;
        assert_eq!(changed.expect("answers"), expected);
    }
    assert_eq!(list(&store, acme).await, [(ann, Role::Admin)]);
    assert_eq!(list(&store, other).await, [(ann, Role::Member)]);
    assert_eq!(
        place(&store, "ann there").await,
        Some((Some(other), Role::Member))
    );
}

async fn an_account_is_left_with_its_sessions_and_grants(store: Arc<dyn Store>) {
    for (name, lost_first) in [("ann", false), ("bob", true)] {
        let (acme, other, person) = of_both(&store, name).await;
        let (here, there) = (format!("{name} here"), format!("{name} there"));
        let opened = store.open_session(person, &session(&here), None).await;
        opened.expect("opened");
        for (account, which) in [(acme, "first"), (other, "further")] {
            let grant = format!("{which} of {name}");
            assert!(approve_as(&store, account, Some(person), &grant).await);
            redeem(&store, &grant, &grant).await.expect("given");
        }
        let (lost, ended, kept, lives, role) = if lost_first {
            (acme, &here, other, &there, Role::Admin)
        } else {
            (other, &there, acme, &here, Role::Member)
        };
        let left = store.leave_account(person, lost, at(2)).await;
        assert_eq!(left.expect("answers"), PersonChanged::Done);
        assert_eq!(list(&store, lost).await, []);
        assert_eq!(list(&store, kept).await, [(person, role)]);
        assert_eq!(place(&store, ended).await, None, "signed out there");
        assert_eq!(place(&store, lives).await, Some((Some(kept), role)));
        for (account, which) in [(acme, "first"), (other, "further")] {
            let token = format!("access {which} of {name}");
            assert_eq!(opens(&store, &token).await, account == kept, "{token}");
        }
        let late = format!("late of {name}");
        assert!(!approve_as(&store, lost, Some(person), &late).await);
        let again = store.leave_account(person, lost, at(3)).await;
        assert_eq!(again.expect("answers"), PersonChanged::Unknown);
    }
}

async fn whoever_leaves_their_last_account_is_gone(store: Arc<dyn Store>) {
    let (acme, other, ann) = of_both(&store, "ann").await;
    for account in [acme, other] {
        let left = store.leave_account(ann, account, at(2)).await;
        assert_eq!(left.expect("answers"), PersonChanged::Done);
    }
    assert_eq!(credentials(&store, "ann@example.com").await, None);
    assert_eq!(place(&store, "ann there").await, None);

    let (_, other, bob) = of_both(&store, "bob").await;
    let removed = store.remove_person(bob, at(2)).await;
    assert_eq!(removed.expect("answers"), PersonChanged::Done);
    assert_eq!(place(&store, "bob there").await, None);
    assert_eq!(list(&store, other).await, []);
}

async fn an_operator_stays_one_everywhere(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    invite(&store, &join("op@example.com", Role::Operator, None), "op").await;
    let op = accept(&store, "op", "kept").await.expect("a good link");
    for (account, from, to) in [(acme, "op", "first"), (other, "first", "second")] {
        invite(
            &store,
            &join("op@example.com", Role::Member, Some(account)),
            to,
        )
        .await;
        assert!(join_by(&store, op, to, from, to).await);
        assert_eq!(
            place(&store, to).await,
            Some((Some(account), Role::Operator))
        );
        assert_eq!(list(&store, account).await, [(op, Role::Operator)]);
    }
    invite(&store, &join("op@example.com", Role::Operator, None), "no").await;
    assert!(
        !join_by(&store, op, "no", "second", "x").await,
        "no account"
    );
    for (account, left) in [(acme, Some(other)), (other, None)] {
        let gone = store.leave_account(op, account, at(2)).await;
        assert_eq!(gone.expect("answers"), PersonChanged::Done);
        let kept = credentials(&store, "op@example.com").await.expect("op");
        assert_eq!(
            (kept.person.account, kept.person.role),
            (left, Role::Operator)
        );
    }
}

async fn joining_ends_links_for_a_new_password(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let ann = member(&store, "ann@example.com", acme).await;
    let reset = Invitation {
        email: email("ann@example.com"),
        purpose: Purpose::NewPassword(ann),
    };
    invite(&store, &reset, "reset").await;
    invite(
        &store,
        &join("ann@example.com", Role::Admin, Some(other)),
        "link",
    )
    .await;
    assert!(join_by(&store, ann, "link", "ann@example.com", "ann there").await);
    assert_eq!(accept(&store, "reset", "stolen").await, None);
}
