//! Changes settings of an account: where it is notified, its numbers, where messages to them are sent, and its SMPP users.

use std::sync::Arc;

use async_trait::async_trait;
use domain::inbound::number::InboundNumber;
use domain::ports::{ForbiddenUrl, NotifySetting, NumberEntry, Store, UrlGuard};
use domain::{AccountId, CallbackUrl, Role};
use engine::audit::Action;
use engine::clock::SystemClock;
use engine::identity::hasher::Hasher;
use engine::identity::smpp_users::{SmppUserChange, SmppUserInput};
use engine::{Actor, Alerts, Numbers, SignIn, SmppUserRegistry};

use crate::people::{accept, invite, join};

struct AllowAll;

#[async_trait]
impl UrlGuard for AllowAll {
    async fn check(&self, _: AccountId, _url: &CallbackUrl) -> Result<(), ForbiddenUrl> {
        Ok(())
    }
}

/// Makes a change, and returns what must not be in the log.
pub(super) async fn change(
    store: &Arc<dyn Store>,
    by: &Actor,
    account: AccountId,
    action: Action,
) -> Vec<String> {
    let secret = "notify/secret/path".to_owned();
    let url = CallbackUrl::parse(&format!("https://one.example/{secret}")).expect("a URL");
    let numbers = Numbers::new(store.clone(), Arc::new(SystemClock), Arc::new(AllowAll));
    let number = InboundNumber::parse("1234").expect("a short code");
    let add = async |keyword: &str| {
        let entry = NumberEntry {
            number: number.clone(),
            keyword: Some(keyword.to_owned()),
            account,
            url: Some(url.clone()),
        };
        numbers.add(by, &entry).await.expect("it is free");
    };
    match action {
        Action::AccountEnter => {
            let email = "root@example.com";
            invite(store, &join(email, Role::Operator, None), "root").await;
            let person = accept(store, "root", "kept").await.expect("a good link");
            let (clock, hasher) = (Arc::new(SystemClock), Arc::new(Hasher::default()));
            let sign_in = SignIn::new(store.clone(), clock, hasher);
            let entered = sign_in.switch_account(by, person, "root", Some(account));
            let renewed = entered.await.expect("the store answers");
            return vec![renewed.expect("operators may act for every account")];
        }
        Action::AccountNotify => {
            let email = "ops@acme.example".to_owned();
            let setting = NotifySetting {
                url: Some(url),
                email: Some(email.parse().expect("an address")),
            };
            let alerts = Alerts::new(store.clone(), Arc::new(SystemClock), Arc::new(AllowAll));
            let set = alerts.set_setting(by, account, &setting).await;
            set.expect("the store answers");
            let found = store.find_notify_setting(account).await;
            assert_eq!(found.expect("the store answers"), setting);
            return vec![secret, email];
        }
        Action::AccountInbound => {
            let set = numbers.set_url(by, account, Some(&url)).await;
            set.expect("the store answers");
        }
        Action::NumberAdd => add("join").await,
        Action::NumberRemove => {
            add("leave").await;
            let removed = numbers.remove(by, &number, Some("Leave")).await;
            assert!(removed.expect("the store answers"), "it was added");
        }
        Action::SmppUserCreate => return vec![create_smpp_user(store, by, account, "acme").await],
        Action::SmppUserChange => {
            let password = create_smpp_user(store, by, account, "changing").await;
            let change = SmppUserChange {
                max_binds: Some(3),
                ..SmppUserChange::default()
            };
            let system_id = "changing".parse().expect("a system ID");
            let changed = smpp_users(store).change(by, &system_id, change).await;
            changed.expect("it exists");
            return vec![password];
        }
        Action::SmppUserRevoke => {
            let password = create_smpp_user(store, by, account, "former").await;
            let users = smpp_users(store);
            let system_id = "former".parse().expect("a system ID");
            users.revoke(by, &system_id).await.expect("it exists");
            return vec![password];
        }
        other => panic!("{other:?} belongs elsewhere"),
    }
    vec![secret]
}

fn smpp_users(store: &Arc<dyn Store>) -> SmppUserRegistry {
    let (clock, hasher) = (Arc::new(SystemClock), Arc::new(Hasher::default()));
    SmppUserRegistry::new(store.clone(), clock, hasher)
}

/// Returns its password.
async fn create_smpp_user(
    store: &Arc<dyn Store>,
    by: &Actor,
    account: AccountId,
    name: &str,
) -> String {
    let input = SmppUserInput {
        system_id: Some(name.parse().expect("a system ID")),
        ..SmppUserInput::default()
    };
    let created = smpp_users(store).create(by, account, input).await;
    created.expect("it is free").1.reveal().to_owned()
}
