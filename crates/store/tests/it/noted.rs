//! Every change is recorded in the audit log.

mod house;

use std::sync::Arc;

use domain::Money;
use domain::person::Password;
use domain::ports::{Change, Store};
use domain::sender::Step;
use engine::audit::Action;

use house::{FROM, House, device, visit};

on_both_stores!(
    every_action_is_noted_by_whoever_does_it,
    what_is_refused_is_noted_twice,
    no_secret_is_ever_noted,
);

async fn every_action_is_noted_by_whoever_does_it(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    for action in Action::ALL {
        let before = house.log().await.len();
        let (who, is_of_account) = house.perform(action).await;
        let log = house.log().await;
        assert!(log.len() > before, "{action:?}");
        let noted = &log[0];
        assert_eq!(noted.action, action.name());
        assert_eq!(
            (noted.who.as_str(), noted.address),
            (who, Some(FROM)),
            "{action:?}"
        );
        let account = is_of_account.then_some(house.account);
        assert_eq!(noted.account, account, "{action:?}");
        assert!(!noted.subject.is_empty(), "{action:?}");
    }
    let refused: Vec<Change> = house.log().await;
    let refused = refused.iter().filter(|it| it.action.ends_with(".refused"));
    assert_eq!(refused.count(), 0, "nothing was refused");
}

async fn what_is_refused_is_noted_twice(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    let by = house.by.clone();
    house.join("bob@example.com").await;
    let id = house.sender("Approved").await;
    house.decide(id, Step::Approve).await;

    let taken = house.accounts.create(&by, "acme", Money::ZERO).await;
    taken.expect_err("the name is taken");
    let much = Money::from_micros(i64::MAX / 4);
    let credited = house.accounts.credit(&by, "acme", much, None, None).await;
    credited.expect_err("out of bounds");
    let decided = house.senders.decide(&by, id, Step::Approve, None).await;
    decided.expect_err("approved already");
    let mut log = house.log().await;
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
        assert!(!pair[0].detail.is_empty(), "why: {:?}", pair[0]);
        assert_eq!(pair[0].subject, pair[1].subject);
    }

    // Whoever measures how long it takes must not learn who can sign in, so both are noted.
    for (email, account) in [
        ("bob@example.com", Some(house.account)),
        ("nobody@example.com", None),
    ] {
        let before = house.log().await.len();
        let wrong = Password::given("not this one".to_owned());
        let opened = house
            .sign_in
            .with_password(email, wrong, &visit(&device()))
            .await;
        assert!(opened.is_err(), "a wrong password");
        let log = house.log().await;
        assert_eq!(log.len() - before, 1, "{email}");
        assert_eq!(log[0].action, "session.open.refused");
        assert_eq!((log[0].who.as_str(), log[0].account), (email, account));
    }
}

async fn no_secret_is_ever_noted(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    for action in Action::ALL {
        house.perform(action).await;
    }
    assert!(house.secrets.len() > 10, "{:?}", house.secrets.len());
    for change in house.log().await {
        let all = format!("{} {} {}", change.who, change.subject, change.detail);
        for secret in &house.secrets {
            assert!(!all.contains(secret.as_str()), "{}: {all}", change.action);
        }
    }
}
