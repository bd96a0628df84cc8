//! Finds out whether a provider that is down is back.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use super::client::ProviderClient;
use crate::health::HttpHealth;

/// The first pause before messages may try again. It doubles until one is taken.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Lets messages try again once a connection can be opened: providers have no common way to ask more without sending.
/// Runs until it is dropped.
pub(super) async fn run(client: Arc<ProviderClient>, health: Arc<HttpHealth>, host: Option<Uri>) {
    let mut pause = FIRST_PAUSE;
    loop {
        health.wait_until_down().await;
        if health.take_success() {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let connected = match &host {
            Some(host) => client.connect(host).await,
            None => Ok(()),
        };
        match connected {
            Ok(()) => health.allow_doubtful_trial(),
            Err(why) => health.set_down(&why),
        }
    }
}
