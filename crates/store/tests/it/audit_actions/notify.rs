//! Changes where an account is notified.

use std::sync::Arc;

use async_trait::async_trait;
use domain::ports::{ForbiddenUrl, NotifySetting, Store, UrlGuard};
use domain::{AccountId, CallbackUrl};
use engine::clock::SystemClock;
use engine::{Actor, Alerts};

struct AllowAll;

#[async_trait]
impl UrlGuard for AllowAll {
    async fn check(&self, _: AccountId, _url: &CallbackUrl) -> Result<(), ForbiddenUrl> {
        Ok(())
    }
}

/// Sets a URL and an address, and returns what must not be in the log.
pub(super) async fn set(store: &Arc<dyn Store>, by: &Actor, account: AccountId) -> [String; 2] {
    let secrets = ["notify/secret/path", "ops@acme.example"].map(str::to_owned);
    let url = CallbackUrl::parse(&format!("https://one.example/{}", secrets[0]));
    let setting = NotifySetting {
        url: Some(url.expect("a URL")),
        email: Some(secrets[1].parse().expect("an address")),
    };
    let alerts = Alerts::new(store.clone(), Arc::new(SystemClock), Arc::new(AllowAll));
    let set = alerts.set_setting(by, account, &setting).await;
    set.expect("the store answers");
    let found = store.find_notify_setting(account).await;
    assert_eq!(found.expect("the store answers"), setting);
    secrets
}
