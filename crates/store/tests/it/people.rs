//! People and their invitations.

use std::sync::Arc;

use domain::person::{PasswordHash, SignedIn};
use domain::ports::{Credentials, Invitation, NewPerson, Purpose, Store};
use domain::{AccountId, Email, Person, PersonId, Role};
use tokio::task::JoinSet;

use super::fixture::Database;
use super::sample::{at, create_account, hash};
use super::sign_in::{session, session_at};

on_both_stores!(
    an_invitation_creates_one_person_and_signs_them_in,
    an_expired_invitation_creates_no_person,
    a_later_invitation_replaces_the_earlier_one,
    one_of_many_concurrent_acceptances_succeeds,
    an_invitation_to_an_address_in_use_does_nothing,
    a_new_password_ends_only_the_sessions_of_its_person,
    an_operator_may_have_no_account,
    signing_in_replaces_the_given_session,
    creating_a_person_replaces_a_session,
);

/// Undoes the migration that added the window of carriers.
pub(super) const UNDO_CARRIER_WINDOW: &str = "
    ALTER TABLE carrier DROP COLUMN places; ALTER TABLE carrier DROP COLUMN per_second";

/// Undoes the migrations that added people and their pages.
pub(super) const UNDO_PEOPLE: &str = "
    DROP TABLE audit; DROP TABLE recovery_code; DROP TABLE half_open;
    DROP TABLE session; DROP TABLE invitation; DROP TABLE person;
    CREATE TABLE session (hash BYTEA PRIMARY KEY, account_id BIGINT NOT NULL REFERENCES account (id),
        expires_us BIGINT NOT NULL);
    DELETE FROM schema_migration WHERE number >= 8";

pub(super) fn email(text: &str) -> Email {
    text.parse().expect("an address")
}

pub(super) fn password(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

pub(super) fn join(text: &str, role: Role, account: Option<AccountId>) -> Invitation {
    Invitation {
        email: email(text),
        purpose: Purpose::Join { role, account },
    }
}

pub(super) async fn invite(store: &Arc<dyn Store>, invitation: &Invitation, link: &str) {
    let invited = store
        .create_invitation(invitation, &hash(link), at(60))
        .await;
    invited.expect("the invitation is stored");
}

/// Accepts an invitation at second 1, and opens a session with the name of the link.
pub(super) async fn accept(
    store: &Arc<dyn Store>,
    link: &str,
    new_password: &str,
) -> Option<PersonId> {
    let accepted = store
        .redeem_invitation(
            &hash(link),
            &password(new_password),
            &session(link),
            at(300),
            false,
        )
        .await;
    accepted.expect("answers").map(|redeemed| redeemed.person)
}

pub(super) async fn find_signed_in(store: &Arc<dyn Store>, secret: &str) -> Option<SignedIn> {
    let found = store.find_session(&hash(secret), at(2)).await;
    found.expect("answers").map(|session| session.signed_in)
}

pub(super) async fn credentials(store: &Arc<dyn Store>, address: &str) -> Option<Credentials> {
    let found = store.find_credentials(&email(address)).await;
    found.expect("answers")
}

/// A person who has accepted an invitation. The address is the secret of their session.
pub(super) async fn member(store: &Arc<dyn Store>, address: &str, account: AccountId) -> PersonId {
    invite(store, &join(address, Role::Member, Some(account)), address).await;
    let accepted = accept(store, address, "first").await;
    accepted.expect("a good link")
}

async fn an_invitation_creates_one_person_and_signs_them_in(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let invitation = join("ann@example.com", Role::Admin, Some(account));
    invite(&store, &invitation, "link").await;
    for n in 0..2 {
        let found = store.find_invitation(&hash("link"), at(59)).await;
        assert_eq!(found.expect("answers").as_ref(), Some(&invitation), "{n}");
    }
    assert_eq!(accept(&store, "other", "x").await, None, "an unknown link");
    assert_eq!(credentials(&store, "ann@example.com").await, None);

    let id = accept(&store, "link", "kept").await.expect("a good link");
    let ann = Person {
        id,
        email: email("ann@example.com"),
        role: Role::Admin,
        account: Some(account),
    };
    let expected = Credentials {
        person: ann.clone(),
        password: password("kept"),
        has_second_factor: false,
    };
    assert_eq!(credentials(&store, "ann@example.com").await, Some(expected));
    assert_eq!(
        find_signed_in(&store, "link").await,
        Some(SignedIn::Person(ann))
    );
    assert_eq!(accept(&store, "link", "again").await, None, "a used link");
    let found = store.find_invitation(&hash("link"), at(2)).await;
    assert_eq!(found.expect("answers"), None);
}

async fn an_expired_invitation_creates_no_person(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let invitation = join("ann@example.com", Role::Member, Some(account));
    invite(&store, &invitation, "link").await;
    let found = store.find_invitation(&hash("link"), at(60)).await;
    assert_eq!(found.expect("answers"), None);
    let (link, new_password, late) = (hash("link"), password("kept"), session_at("link", 60));
    let accepted = store
        .redeem_invitation(&link, &new_password, &late, at(300), false)
        .await;
    assert_eq!(accepted.expect("answers"), None);
    assert_eq!(credentials(&store, "ann@example.com").await, None);
}

async fn a_later_invitation_replaces_the_earlier_one(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    for (link, role) in [("early", Role::Member), ("late", Role::Admin)] {
        invite(&store, &join("ann@example.com", role, Some(account)), link).await;
    }
    assert_eq!(accept(&store, "early", "x").await, None);
    assert!(accept(&store, "late", "kept").await.is_some());
    let ann = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(ann.person.role, Role::Admin);
}

async fn one_of_many_concurrent_acceptances_succeeds(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let invitation = join("ann@example.com", Role::Member, Some(account));
    invite(&store, &invitation, "link").await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (new_password, opened) = (password(&n.to_string()), session(&n.to_string()));
            let accepted = store
                .redeem_invitation(&hash("link"), &new_password, &opened, at(1), false)
                .await;
            accepted.expect("answers").map(|_| n)
        });
    }
    let winners: Vec<i32> = tasks.join_all().await.into_iter().flatten().collect();
    let [winner] = winners[..] else {
        panic!("{winners:?}");
    };
    let ann = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(ann.password, password(&winner.to_string()));
    for n in 0..20 {
        let opened = find_signed_in(&store, &n.to_string()).await;
        assert_eq!(opened.is_some(), n == winner, "{n}");
    }
}

async fn an_invitation_to_an_address_in_use_does_nothing(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let invitation = join("ann@example.com", Role::Admin, Some(account));
    invite(&store, &invitation, "link").await;
    store
        .create_sign_in_link(&hash("first"), account, at(60))
        .await
        .expect("the link is stored");
    let opened = store
        .redeem_sign_in_link(&hash("first"), &session("first"))
        .await;
    assert!(opened.expect("answers"));
    assert!(
        create_operator(&store, account, "ann@example.com")
            .await
            .is_some()
    );
    assert_eq!(accept(&store, "link", "stolen").await, None);
    let ann = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(
        (ann.person.role, ann.password),
        (Role::Operator, password("kept"))
    );
    assert_eq!(find_signed_in(&store, "link").await, None);
}

/// Creates an operator, whose session `operator` replaces the session `first`.
async fn create_operator(
    store: &Arc<dyn Store>,
    account: AccountId,
    address: &str,
) -> Option<PersonId> {
    let person = NewPerson {
        email: email(address),
        role: Role::Operator,
        account: Some(account),
        password: password("kept"),
        created_at: at(1),
    };
    let created = store
        .create_person(&person, &session("operator"), &hash("first"))
        .await;
    created.expect("answers")
}

async fn creating_a_person_replaces_a_session(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    member(&store, "ann@example.com", account).await;
    store
        .create_sign_in_link(&hash("first"), account, at(60))
        .await
        .expect("the link is stored");
    let opened = store
        .redeem_sign_in_link(&hash("first"), &session("first"))
        .await;
    assert!(opened.expect("answers"));

    let created = create_operator(&store, account, "ann@example.com").await;
    assert_eq!(created, None, "the address is already used");
    let first = find_signed_in(&store, "first").await;
    assert_eq!(first, Some(SignedIn::ByLink(account)), "nothing changed");
    assert_eq!(find_signed_in(&store, "operator").await, None);

    let id = create_operator(&store, account, "op@example.com").await;
    assert_eq!(find_signed_in(&store, "first").await, None);
    let operator = find_signed_in(&store, "operator").await.expect("signed in");
    assert_eq!(operator.person().map(|person| person.id), id);
    assert_eq!(operator.role(), Role::Operator);
}

async fn a_new_password_ends_only_the_sessions_of_its_person(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    member(&store, "bob@example.com", account).await;
    let invitation = Invitation {
        email: email("ann@example.com"),
        purpose: Purpose::NewPassword(ann),
    };
    invite(&store, &invitation, "again").await;
    let found = store.find_invitation(&hash("again"), at(1)).await;
    assert_eq!(found.expect("answers"), Some(invitation));
    assert_eq!(accept(&store, "again", "second").await, Some(ann));

    let ann_now = credentials(&store, "ann@example.com").await.expect("ann");
    assert_eq!(ann_now.password, password("second"));
    assert_eq!(
        (ann_now.person.role, ann_now.person.account),
        (Role::Member, Some(account))
    );
    for (secret, expected) in [
        ("ann@example.com", false),
        ("again", true),
        ("bob@example.com", true),
    ] {
        assert_eq!(
            find_signed_in(&store, secret).await.is_some(),
            expected,
            "{secret}"
        );
    }
    let bob = credentials(&store, "bob@example.com").await.expect("bob");
    assert_eq!(bob.password, password("first"));
}

async fn an_operator_may_have_no_account(store: Arc<dyn Store>) {
    invite(
        &store,
        &join("op@example.com", Role::Operator, None),
        "link",
    )
    .await;
    let id = accept(&store, "link", "kept").await.expect("a good link");
    let signed_in = find_signed_in(&store, "link").await.expect("signed in");
    assert_eq!(
        (signed_in.account(), signed_in.role()),
        (None, Role::Operator)
    );
    assert_eq!(signed_in.person().map(|person| person.id), Some(id));
}

async fn signing_in_replaces_the_given_session(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    let before = hash("ann@example.com");
    for (secret, replaced) in [
        ("one", None),
        ("two", Some(&before)),
        ("three", Some(&before)),
    ] {
        let opened = store.open_session(ann, &session(secret), replaced).await;
        opened.expect("the session opens");
    }
    for (secret, expected) in [
        ("ann@example.com", false),
        ("one", true),
        ("two", true),
        ("three", true),
    ] {
        let opened = find_signed_in(&store, secret).await;
        assert_eq!(opened.is_some(), expected, "{secret}");
    }
    let late = store.find_session(&hash("two"), at(900)).await;
    assert_eq!(late.expect("answers"), None, "it has expired");
}

mod older_schema {
    use super::super::days::undo_partitions;
    use super::super::handshake::UNDO_NODE_INFO;
    use super::super::traffic::UNDO_DASHBOARD;
    use super::{
        Database, SignedIn, UNDO_CARRIER_WINDOW, UNDO_PEOPLE, create_account, find_signed_in,
        member,
    };

    on_both_databases!(sessions_are_migrated);

    async fn sessions_are_migrated(database: Database) {
        const OPEN: &str = "INSERT INTO session (hash, account_id, expires_us)
            SELECT hash, account_id, 1800000900000000 FROM sign_in_link";
        let store = database.open().await;
        let account = create_account(&store, "acme").await;
        let link = store
            .create_sign_in_link(&super::hash("open"), account, super::at(60))
            .await;
        link.expect("the link is stored");
        drop(store);
        undo_partitions(&database).await;
        database.execute(UNDO_NODE_INFO).await;
        database.execute(UNDO_CARRIER_WINDOW).await;
        database.execute(UNDO_DASHBOARD).await;
        database.execute(UNDO_PEOPLE).await;
        database.execute(OPEN).await;

        let store = database.open().await;
        let before = find_signed_in(&store, "open").await;
        assert_eq!(before, Some(SignedIn::ByLink(account)));
        member(&store, "ann@example.com", account).await;
        assert!(find_signed_in(&store, "ann@example.com").await.is_some());
    }
}
