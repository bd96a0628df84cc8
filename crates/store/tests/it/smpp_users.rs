//! SMPP users: what is stored, who may bind, and what bound sessions learn about changes.

mod binds;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::access::AccessLimits;
use domain::billing::SpendingRules;
use domain::person::PasswordHash;
use domain::ports::{NewSmppUser, NodeInfo, Store};
use domain::smpp_user::{
    BindKinds, ReceiptDate, ReceiptErrorField, ReceiptFormat, ReceiptId, SmppLimits, SmppUser,
    SmppUserOptions, SystemId,
};
use domain::{AccountId, Clock, Permission, SmppUserId, Timestamp};
use engine::clock::SystemClock;
use engine::identity::hasher::Hasher;
use engine::identity::smpp_users::{
    FollowedUser, SignInRefused, SmppUserChange, SmppUserError, SmppUserInput, SmppUserRegistry,
    SmppUsers,
};
use engine::{Actor, Gate, Node};
use testkit::TEST_TIMEOUT;

use super::sample::{at, create_account};
use super::steps::info;

on_both_stores!(
    a_user_is_found_as_it_was_created,
    a_system_id_is_free_again_after_its_user_was_revoked,
    the_right_password_binds_from_allowed_addresses,
    guesses_are_slowed_but_known_clients_bind,
    many_binds_of_a_client_at_once_are_no_guesses,
    bound_sessions_learn_about_changes,
    options_are_changed_and_sessions_learn_it,
);

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));

fn system_id(text: &str) -> SystemId {
    text.parse().expect("a system ID")
}

fn new_user(account: AccountId, name: &str) -> NewSmppUser {
    NewSmppUser {
        account,
        system_id: system_id(name),
        password: PasswordHash::new(format!("hash of {name}")),
        options: SmppUserOptions::default(),
        created_at: at(7),
    }
}

/// Options that all differ from the default.
fn narrow_options() -> SmppUserOptions {
    SmppUserOptions {
        allow: "192.0.2.0/24 2001:db8::/32".parse().expect("networks"),
        access_limits: AccessLimits {
            senders: "Acme Inc.\n37120000001".parse().expect("senders"),
            countries: "EE".parse().expect("a country"),
        },
        limits: SmppLimits {
            max_binds: None,
            max_per_second: Some(u32::MAX),
            binds: "receiver".parse::<BindKinds>().expect("a kind"),
        },
        receipts: ReceiptFormat {
            date: ReceiptDate::Seconds,
            id: ReceiptId::Hex,
            error: ReceiptErrorField::Zero,
        },
    }
}

async fn create(store: &Arc<dyn Store>, user: &NewSmppUser) -> Option<SmppUserId> {
    store.create_smpp_user(user).await.expect("answers")
}

async fn find(store: &Arc<dyn Store>, name: &str) -> Option<(SmppUser, PasswordHash)> {
    let found = store.find_smpp_credentials(&system_id(name)).await;
    let found = found.expect("answers");
    found.map(|found| (found.user, found.password))
}

async fn a_user_is_found_as_it_was_created(store: Arc<dyn Store>) {
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let rules = SpendingRules {
        countries: "LV EE".parse().expect("countries"),
        approved_senders_only: true,
        ..SpendingRules::default()
    };
    let set = store.set_rules(acme, None, &rules).await;
    assert!(set.expect("answers"));
    let narrow = NewSmppUser {
        options: narrow_options(),
        ..new_user(acme, "narrow")
    };
    let wide = new_user(other, "WIDE");
    let mut ids = Vec::new();
    for new in [&narrow, &wide] {
        let before = store.access_version().await.expect("answers");
        let id = create(&store, new).await.expect("it is free");
        assert!(store.access_version().await.expect("answers") > before);
        ids.push(id);
        let (user, password) = find(&store, new.system_id.as_str()).await.expect("a user");
        assert_eq!((user.id, &user.system_id), (id, &new.system_id));
        assert_eq!(user.options(), new.options);
        assert_eq!((user.created_at, password), (at(7), new.password.clone()));
        let access = &user.access;
        assert_eq!(access.name, new.system_id.as_str());
        assert_eq!(access.account, new.account);
        assert!(access.permissions.contains(Permission::SmsSend) && !access.suspended);
        assert_eq!(access.approved_senders_only, new.account == acme);
    }
    assert_eq!(find(&store, "wide").await, None, "case matters");
    let (narrow, wide) = (ids[0], ids[1]);
    let listed = async |account| -> Vec<SmppUserId> {
        let users = store.list_smpp_users(account).await.expect("answers");
        users.iter().map(|user| user.id).collect()
    };
    assert_eq!(listed(None).await, [narrow, wide]);
    assert_eq!(listed(Some(acme)).await, [narrow]);
    let found = store.find_smpp_users(&[wide]).await.expect("answers");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, wide);
}

async fn a_system_id_is_free_again_after_its_user_was_revoked(store: Arc<dyn Store>) {
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let first = create(&store, &new_user(acme, "same")).await;
    let first = first.expect("it is free");
    assert_eq!(create(&store, &new_user(other, "same")).await, None);
    let revoke = async || {
        let revoked = store.revoke_smpp_user(&system_id("same"), at(8)).await;
        revoked.expect("answers")
    };
    assert!(revoke().await);
    assert!(!revoke().await, "revoked already");
    assert_eq!(find(&store, "same").await, None);
    let found = store.find_smpp_users(&[first]).await.expect("answers");
    assert_eq!(found, []);
    let second = create(&store, &new_user(other, "same")).await;
    let second = second.expect("it is free again");
    assert_ne!(first, second);
    let (user, _) = find(&store, "same").await.expect("a user");
    assert_eq!((user.id, user.access.account), (second, other));
}

/// A clock that stands still, so that no attempt is forgiven.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        at(10)
    }
}

/// An account whose users are created.
struct Fixture {
    store: Arc<dyn Store>,
    registry: SmppUserRegistry,
    account: AccountId,
}

impl Fixture {
    async fn new(store: Arc<dyn Store>) -> Self {
        let account = create_account(&store, "acme").await;
        let hasher = Arc::new(Hasher::default());
        Self {
            registry: SmppUserRegistry::new(store.clone(), Arc::new(FixedClock), hasher),
            store,
            account,
        }
    }

    async fn create(&self, name: &str, allow: &str) -> Result<String, SmppUserError> {
        let input = SmppUserInput {
            system_id: Some(system_id(name)),
            options: SmppUserOptions {
                allow: allow.parse().expect("networks"),
                ..SmppUserOptions::default()
            },
            ..SmppUserInput::default()
        };
        let by = Actor::command_line();
        let (_, password) = self.registry.create(&by, self.account, input).await?;
        Ok(password.reveal().to_owned())
    }

    /// Signs users in from now on, with the newest version of everything.
    async fn start(&self) -> Arc<SmppUsers> {
        let gate = Gate::start(self.store.clone(), Arc::new(FixedClock));
        wait_until(async || gate.is_current()).await;
        let hasher = Arc::new(Hasher::default());
        let info = NodeInfo {
            works: false,
            ..info()
        };
        let node = Node::start(self.store.clone(), Arc::new(SystemClock), info).await;
        let node = node.expect("a node joins");
        SmppUsers::start(self.store.clone(), Arc::new(FixedClock), hasher, gate, node)
    }
}

async fn the_right_password_binds_from_allowed_addresses(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let password = fixture.create("acme", "192.0.2.0/24").await;
    let password = password.expect("it is free");
    let taken = fixture.create("acme", "").await;
    assert!(matches!(taken, Err(SmppUserError::Taken(_))), "{taken:?}");
    let users = fixture.start().await;
    // The second time, the password is recognised without the slow hash.
    for _ in 0..2 {
        let user = users.sign_in("acme", &password, HERE).await;
        assert_eq!(user.expect("the right password").system_id.as_str(), "acme");
        let refused = users.sign_in("acme", &password, ELSEWHERE).await;
        assert!(
            matches!(refused, Err(SignInRefused::NotAllowedFrom)),
            "{refused:?}"
        );
    }
    for (name, given, expected) in [
        ("acme", "wrong", SignInRefused::WrongPassword),
        ("acme", "", SignInRefused::WrongPassword),
        ("ACME", password.as_str(), SignInRefused::UnknownSystemId),
        (
            "not an ID",
            password.as_str(),
            SignInRefused::UnknownSystemId,
        ),
    ] {
        let refused = users.sign_in(name, given, HERE).await.unwrap_err();
        assert_eq!(refused.to_string(), expected.to_string(), "{name}");
    }
    let suspended = fixture.store.set_suspended("acme", true).await;
    assert!(suspended.expect("answers"));
    wait_until(async || {
        let refused = users.sign_in("acme", &password, HERE).await;
        matches!(refused, Err(SignInRefused::AccountSuspended))
    })
    .await;
    users.stop();
}

async fn guesses_are_slowed_but_known_clients_bind(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let password = fixture.create("acme", "").await.expect("it is free");
    let users = fixture.start().await;
    let known = users.sign_in("acme", &password, HERE).await;
    known.expect("the right password");
    let refused = async |guess: &str, from: IpAddr| -> SignInRefused {
        let refused = users.sign_in("acme", guess, from).await;
        refused.expect_err("a guess")
    };
    // An address has ten attempts, a system ID twenty.
    for guess in 0..11 {
        let refused = refused(&guess.to_string(), HERE).await;
        let is_slowed = matches!(refused, SignInRefused::Slowed);
        assert_eq!(is_slowed, guess == 10, "guess {guess}: {refused}");
    }
    for other in 0..11 {
        let from = IpAddr::V4(Ipv4Addr::new(203, 0, 113, other));
        let refused = refused("guess", from).await;
        let is_slowed = matches!(refused, SignInRefused::Slowed);
        assert_eq!(is_slowed, other == 10, "address {other}: {refused}");
    }
    let known = users.sign_in("acme", &password, HERE).await;
    known.expect("this node checked the password before");
    // A change of anything, such as a token of another account, makes it read the user again.
    for suspended in [true, false] {
        let set = fixture.store.set_suspended("acme", suspended).await;
        assert!(set.expect("answers"));
        wait_until(
            async || match users.sign_in("acme", &password, HERE).await {
                Ok(_) => !suspended,
                Err(SignInRefused::AccountSuspended) => suspended,
                Err(refused) => panic!("{refused}"),
            },
        )
        .await;
    }
    let other_node = fixture.start().await;
    let slowed = other_node.sign_in("acme", &password, ELSEWHERE).await;
    assert!(matches!(slowed, Err(SignInRefused::Slowed)), "{slowed:?}");
    other_node.stop();
    users.stop();
}

/// More than an address has attempts.
async fn many_binds_of_a_client_at_once_are_no_guesses(store: Arc<dyn Store>) {
    const BINDS: usize = 30;
    let fixture = Fixture::new(store).await;
    let password = fixture.create("acme", "").await.expect("it is free");
    let users = fixture.start().await;
    let sign_in = || {
        let (users, password) = (users.clone(), password.clone());
        tokio::spawn(async move { users.sign_in("acme", &password, HERE).await })
    };
    let all: Vec<_> = (0..BINDS).map(|_| sign_in()).collect();
    for one in all {
        let signed_in = one.await.expect("no panic");
        signed_in.expect("the right password");
    }
    users.stop();
}

async fn bound_sessions_learn_about_changes(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let password = fixture.create("acme", "").await.expect("it is free");
    let other = fixture.create("other", "").await.expect("it is free");
    let users = fixture.start().await;
    let user = users.sign_in("acme", &password, HERE).await;
    let user = user.expect("the right password");
    let stays = users.sign_in("other", &other, HERE).await;
    let stays = users.follow(&stays.expect("the right password"));
    let mut followed = [users.follow(&user), users.follow(&user)];
    assert_eq!(followed[0].borrow().as_ref(), Some(&user));

    let suspended = fixture.store.set_suspended("acme", true).await;
    assert!(suspended.expect("answers"));
    for session in &mut followed {
        wait_for(session, |now| now.is_some_and(|user| user.access.suspended)).await;
    }
    let by = Actor::command_line();
    let revoked = fixture.registry.revoke(&by, &user.system_id).await;
    revoked.expect("it exists");
    for session in &mut followed {
        wait_for(session, |now| now.is_none()).await;
    }
    assert!(stays.borrow().is_some(), "another user");
    // A session that begins to follow a user that is revoked already learns it, too.
    drop(followed);
    let mut late = users.follow(&user);
    wait_for(&mut late, |now| now.is_none()).await;
    wait_until(async || {
        let refused = users.sign_in("acme", &password, HERE).await;
        matches!(refused, Err(SignInRefused::UnknownSystemId))
    })
    .await;
    users.stop();
}

async fn options_are_changed_and_sessions_learn_it(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let password = fixture.create("acme", "").await.expect("it is free");
    let users = fixture.start().await;
    let user = users.sign_in("acme", &password, HERE).await;
    let mut session = users.follow(&user.expect("the right password"));
    let by = Actor::command_line();
    let change = async |name: &str, options: SmppUserOptions| {
        let change = SmppUserChange::from(options);
        fixture.registry.change(&by, &system_id(name), change).await
    };
    change("acme", narrow_options()).await.expect("it exists");
    wait_for(&mut session, |now| {
        now.is_some_and(|user| user.options() == narrow_options())
    })
    .await;
    let (changed, hash) = find(&fixture.store, "acme").await.expect("a user");
    assert_eq!(changed.options(), narrow_options());
    assert!(!hash.as_str().is_empty());
    let unknown = change("nobody", narrow_options()).await;
    assert!(matches!(unknown, Err(SmppUserError::Unknown(_))));
    let store = &fixture.store;
    let (nobody, options) = (system_id("nobody"), narrow_options());
    let changed = store.change_smpp_user(&nobody, &options).await;
    assert!(!changed.expect("answers"));
    users.stop();
}

async fn wait_for(session: &mut FollowedUser, is_so: impl Fn(Option<&Arc<SmppUser>>) -> bool) {
    let waiting = session.wait_for(|now| is_so(now.as_ref()));
    let waited = tokio::time::timeout(TEST_TIMEOUT, waiting).await;
    waited
        .expect("within the time limit")
        .expect("still followed");
}

async fn wait_until(mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    while !is_so().await {
        assert!(std::time::Instant::now() < deadline, "it does not happen");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await; // tidy: between two looks at a state that has a deadline
    }
}
