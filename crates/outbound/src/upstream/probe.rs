//! Checks whether an upstream that is down is back.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::BAD_TOKEN;
use super::client::UpstreamClient;
use super::verdict::answer_text;
use crate::health::HttpHealth;

/// The first pause between two checks. It doubles until a message is accepted.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Checks once at the start, so that a wrong token is noticed before the first message, and whenever the upstream is
/// down. Runs until it is dropped.
pub(super) async fn run(client: Arc<UpstreamClient>, health: Arc<HttpHealth>) {
    if let Err(why) = check(&client).await {
        health.set_down(&why);
    }
    let mut pause = FIRST_PAUSE;
    loop {
        health.wait_until_down().await;
        if health.take_success() {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match check(&client).await {
            Ok(()) => health.allow_trial(),
            Err(why) => health.set_down(&why),
        }
    }
}

/// Whether messages can be sent, or else why not.
///
/// An upstream of our own kind has one URL that tells whether it accepts messages and one that needs the token. Others
/// may have neither; then any answer is enough.
pub(super) async fn check(client: &UpstreamClient) -> Result<(), String> {
    for path in ["health/ready", "token"] {
        let reply = client.get(path).await.map_err(|error| error.to_string())?;
        if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(answer_text(&reply));
        }
        if path == "token" && reply.status == StatusCode::UNAUTHORIZED {
            return Err(BAD_TOKEN.to_owned());
        }
    }
    Ok(())
}
