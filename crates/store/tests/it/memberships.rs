//! People who belong to several accounts.

use std::sync::Arc;

use domain::person::Membership;
use domain::ports::{Invitation, Joining, PersonChanged, Purpose, Store};
use domain::{AccountId, PersonId, Role};

use super::oauth::{approve_as, opens, redeem};
use super::people::{accept, credentials, email, find_signed_in, invite, join, member};
use super::sample::{at, create_account, hash};
use super::sign_in::session;

on_both_stores!(
    two_accounts_invite_the_same_address,
    an_invitation_adds_an_account_only_for_its_person,
    a_session_switches_to_another_account,
    a_role_is_changed_in_one_account,
    leaving_an_account_ends_its_sessions_and_grants,
    leaving_the_last_account_deletes_the_person,
    an_operator_stays_an_operator_in_every_account,
    operators_may_act_for_every_account,
    joining_invalidates_password_links,
);

/// Accepts the invitation `link` with the session `session`, whose secret becomes `renewed`.
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

/// Two accounts, and a person who is a member of the first and an admin of the second. The session `NAME there` is in
/// the second.
async fn member_of_both(store: &Arc<dyn Store>, name: &str) -> (AccountId, AccountId, PersonId) {
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
async fn account_and_role(
    store: &Arc<dyn Store>,
    secret: &str,
) -> Option<(Option<AccountId>, Role)> {
    let signed_in = find_signed_in(store, secret).await?;
    Some((signed_in.account(), signed_in.role()))
}

async fn switch(store: &Arc<dyn Store>, from: &str, to: &str, account: AccountId) -> bool {
    let switched = store
        .switch_account(&hash(from), &hash(to), Some(account))
        .await;
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
        "the invitation of the other account is unchanged"
    );
}

async fn an_invitation_adds_an_account_only_for_its_person(store: Arc<dyn Store>) {
    let (acme, other, ann) = member_of_both(&store, "ann").await;
    let bob = member(&store, "bob@example.com", acme).await;
    assert_eq!(
        account_and_role(&store, "ann@example.com").await,
        None,
        "the session has another secret"
    );
    assert_eq!(
        account_and_role(&store, "ann there").await,
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
    let ann_now = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(
        ann_now.person.account,
        Some(acme),
        "the first account stays the main one"
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
        "the link is for somebody else"
    );
    assert_eq!(list(&store, other).await, [(ann, Role::Admin)]);
    assert!(
        accept(&store, "cid", "kept").await.is_some(),
        "the link is still valid"
    );
}

async fn a_session_switches_to_another_account(store: Arc<dyn Store>) {
    let (acme, other, ann) = member_of_both(&store, "ann").await;
    let third = create_account(&store, "third").await;
    assert!(
        !switch(&store, "ann there", "x", third).await,
        "not her account"
    );
    assert!(!switch(&store, "nobody", "x", acme).await, "no session");
    assert!(switch(&store, "ann there", "back", acme).await);
    assert_eq!(account_and_role(&store, "ann there").await, None);
    assert_eq!(
        account_and_role(&store, "back").await,
        Some((Some(acme), Role::Member))
    );
    assert!(switch(&store, "back", "again", other).await);
    assert_eq!(
        account_and_role(&store, "again").await,
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
        "the time in the first account is unchanged"
    );
}

async fn a_role_is_changed_in_one_account(store: Arc<dyn Store>) {
    let (acme, other, ann) = member_of_both(&store, "ann").await;
    let third = create_account(&store, "third").await;
    for (account, role, expected) in [
        (acme, Role::Admin, PersonChanged::Done),
        (other, Role::Member, PersonChanged::Done),
        (third, Role::Admin, PersonChanged::Unknown),
    ] {
        let changed = store.set_account_role(ann, account, role).await;
        assert_eq!(changed.expect("answers"), expected);
    }
    assert_eq!(list(&store, acme).await, [(ann, Role::Admin)]);
    assert_eq!(list(&store, other).await, [(ann, Role::Member)]);
    assert_eq!(
        account_and_role(&store, "ann there").await,
        Some((Some(other), Role::Member))
    );
}

async fn leaving_an_account_ends_its_sessions_and_grants(store: Arc<dyn Store>) {
    for (name, leaves_first) in [("ann", false), ("bob", true)] {
        let (acme, other, person) = member_of_both(&store, name).await;
        let (here, there) = (format!("{name} here"), format!("{name} there"));
        let opened = store.open_session(person, &session(&here), None).await;
        opened.expect("opened");
        for (account, which) in [(acme, "first"), (other, "further")] {
            let grant = format!("{which} of {name}");
            assert!(approve_as(&store, account, Some(person), &grant).await);
            redeem(&store, &grant, &grant).await.expect("redeemed");
        }
        let (left, ended, remaining, open, role) = if leaves_first {
            (acme, &here, other, &there, Role::Admin)
        } else {
            (other, &there, acme, &here, Role::Member)
        };
        let removed = store.remove_member(person, left, at(2)).await;
        assert_eq!(removed.expect("answers"), PersonChanged::Done);
        assert_eq!(list(&store, left).await, []);
        assert_eq!(list(&store, remaining).await, [(person, role)]);
        assert_eq!(
            account_and_role(&store, ended).await,
            None,
            "signed out there"
        );
        assert_eq!(
            account_and_role(&store, open).await,
            Some((Some(remaining), role))
        );
        for (account, which) in [(acme, "first"), (other, "further")] {
            let token = format!("access {which} of {name}");
            assert_eq!(opens(&store, &token).await, account == remaining, "{token}");
        }
        let late = format!("late of {name}");
        assert!(!approve_as(&store, left, Some(person), &late).await);
        let again = store.remove_member(person, left, at(3)).await;
        assert_eq!(again.expect("answers"), PersonChanged::Unknown);
    }
}

async fn leaving_the_last_account_deletes_the_person(store: Arc<dyn Store>) {
    let (acme, other, ann) = member_of_both(&store, "ann").await;
    for account in [acme, other] {
        let left = store.remove_member(ann, account, at(2)).await;
        assert_eq!(left.expect("answers"), PersonChanged::Done);
    }
    assert_eq!(credentials(&store, "ann@example.com").await, None);
    assert_eq!(account_and_role(&store, "ann there").await, None);

    let (_, other, bob) = member_of_both(&store, "bob").await;
    let removed = store.remove_person(bob, at(2)).await;
    assert_eq!(removed.expect("answers"), PersonChanged::Done);
    assert_eq!(account_and_role(&store, "bob there").await, None);
    assert_eq!(list(&store, other).await, []);
}

async fn operators_may_act_for_every_account(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    invite(&store, &join("op@example.com", Role::Operator, None), "op").await;
    accept(&store, "op", "kept").await.expect("a good link");
    let nobody = AccountId::new(acme.get() + 7).expect("in range");
    assert!(!switch(&store, "op", "x", nobody).await, "no such account");
    assert!(switch(&store, "op", "acts", acme).await);
    let acting = account_and_role(&store, "acts").await;
    assert_eq!(acting, Some((Some(acme), Role::Operator)));
    let (acting, left) = (hash("acts"), hash("left"));
    let left = store.switch_account(&acting, &left, None).await;
    assert!(left.expect("answers"));
    let left = account_and_role(&store, "left").await;
    assert_eq!(left, Some((None, Role::Operator)));

    let (first, _, _) = member_of_both(&store, "ann").await;
    assert!(!switch(&store, "ann there", "x", acme).await, "no operator");
    assert!(switch(&store, "ann there", "back", first).await);
    let back = account_and_role(&store, "back").await;
    assert_eq!(back.and_then(|(account, _)| account), Some(first));
}

async fn an_operator_stays_an_operator_in_every_account(store: Arc<dyn Store>) {
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
            account_and_role(&store, to).await,
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
        let removed = store.remove_member(op, account, at(2)).await;
        assert_eq!(removed.expect("answers"), PersonChanged::Done);
        let operator = credentials(&store, "op@example.com").await.expect("op");
        assert_eq!(
            (operator.person.account, operator.person.role),
            (left, Role::Operator)
        );
    }
}

async fn joining_invalidates_password_links(store: Arc<dyn Store>) {
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
