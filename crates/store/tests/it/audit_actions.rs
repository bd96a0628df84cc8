//! Every change is recorded in the audit log.

mod lists;
mod plans;
mod settings;
mod subjects;
mod use_cases;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::person::{Device, Password};
use domain::ports::{Change, Store};
use domain::sender::Step;
use domain::{Money, Person};
use engine::Actor;
use engine::audit::Action;
use engine::identity::sign_in::SignInContext;

use use_cases::UseCases;

on_both_stores!(
    every_action_is_recorded_with_its_actor,
    a_refused_action_is_recorded_twice,
    no_secret_is_recorded,
);

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

const PASSWORD: &str = "violet tram eleven";

fn password() -> Password {
    Password::given(PASSWORD.to_owned())
}

fn actor(person: &Person) -> Actor {
    Actor {
        who: person.email.to_string(),
        address: Some(FROM),
    }
}

/// The device of every sign-in.
fn device() -> Device {
    Device {
        address: Some(FROM),
        browser: "Firefox on Linux".to_owned(),
    }
}

fn sign_in_context(device: &Device) -> SignInContext<'_> {
    SignInContext {
        device,
        browser: None,
        replaced: None,
    }
}

async fn every_action_is_recorded_with_its_actor(store: Arc<dyn Store>) {
    let mut use_cases = UseCases::open(store).await;
    for action in Action::ALL {
        let before = use_cases.log().await.len();
        let (who, is_of_account) = use_cases.perform(action).await;
        let log = use_cases.log().await;
        assert!(log.len() > before, "{action:?}");
        let entry = &log[0];
        assert_eq!(entry.action, action.name());
        assert_eq!(
            (entry.who.as_str(), entry.address),
            (who, Some(FROM)),
            "{action:?}"
        );
        let account = is_of_account.then_some(use_cases.account);
        assert_eq!(entry.account, account, "{action:?}");
        assert!(!entry.subject.is_empty(), "{action:?}");
    }
    let refused: Vec<Change> = use_cases.log().await;
    let refused = refused.iter().filter(|it| it.action.ends_with(".refused"));
    assert_eq!(refused.count(), 0, "nothing was refused");
}

async fn a_refused_action_is_recorded_twice(store: Arc<dyn Store>) {
    let mut use_cases = UseCases::open(store).await;
    let actor = use_cases.actor.clone();
    use_cases.join("bob@example.com").await;
    let id = use_cases.sender("Approved").await;
    use_cases.decide(id, Step::Approve).await;

    let created = use_cases.accounts.create(&actor, "acme", Money::ZERO).await;
    created.expect_err("the name is already used");
    let too_much = Money::from_micros(i64::MAX / 4);
    let credited = use_cases
        .accounts
        .credit(&actor, "acme", too_much, None, None)
        .await;
    credited.expect_err("out of bounds");
    let decided = use_cases
        .senders
        .decide(&actor, id, Step::Approve, None)
        .await;
    decided.expect_err("approved already");
    let mut log = use_cases.log().await;
    log.truncate(6);
    let names: Vec<&str> = log.iter().rev().map(|it| it.action.as_str()).collect();
    let expected = [
        "account.create",
        "account.create.refused",
        "account.credit",
        "account.credit.refused",
        "sender.approve",
        "sender.approve.refused",
    ];
    assert_eq!(names, expected);
    for pair in log.chunks(2) {
        assert!(!pair[0].detail.is_empty(), "no reason: {:?}", pair[0]);
        assert_eq!(pair[0].subject, pair[1].subject);
    }

    // Both are recorded, so that the duration does not reveal who can sign in.
    for (email, account) in [
        ("bob@example.com", Some(use_cases.account)),
        ("nobody@example.com", None),
    ] {
        let before = use_cases.log().await.len();
        let wrong = Password::given("not this one".to_owned());
        let opened = use_cases
            .sign_in
            .with_password(email, wrong, &sign_in_context(&device()))
            .await;
        assert!(opened.is_err(), "a wrong password");
        let log = use_cases.log().await;
        assert_eq!(log.len() - before, 1, "{email}");
        assert_eq!(log[0].action, "session.open.refused");
        assert_eq!((log[0].who.as_str(), log[0].account), (email, account));
    }
}

async fn no_secret_is_recorded(store: Arc<dyn Store>) {
    let mut use_cases = UseCases::open(store).await;
    for action in Action::ALL {
        use_cases.perform(action).await;
    }
    assert!(
        use_cases.secrets.len() > 10,
        "{:?}",
        use_cases.secrets.len()
    );
    for change in use_cases.log().await {
        let all = format!("{} {} {}", change.who, change.subject, change.detail);
        for secret in &use_cases.secrets {
            assert!(!all.contains(secret.as_str()), "{}: {all}", change.action);
        }
    }
}
