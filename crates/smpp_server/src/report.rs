//! Regular work for the sessions of this node: reporting what they do, and learning about those of other nodes.

use std::sync::Weak;
use std::time::Duration;

use domain::NodeId;
use domain::ports::StoreError;
use engine::Engine;

use crate::sessions::SmppSessions;

const EVERY: Duration = Duration::from_secs(2);
/// How many sessions one report contains. With more busy ones, each is reported less often, and the database has no
/// more to do.
const MOST: usize = 200;

pub(crate) async fn run(engine: Weak<Engine>, sessions: Weak<SmppSessions>) {
    let mut reported_as = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let (Some(engine), Some(sessions)) = (engine.upgrade(), sessions.upgrade()) else {
            return;
        };
        let users = &engine.smpp_users;
        if let Err(error) = users.store_after_rejoin().await {
            tracing::warn!(%error, "the SMPP sessions of this node cannot be counted; trying again");
        }
        if let Err(error) = users.share_rates().await {
            tracing::warn!(%error, "the SMPP sessions of other nodes cannot be counted; trying again");
        }
        if let Err(error) = report(&engine, &sessions, &mut reported_as).await {
            tracing::warn!(%error, "the SMPP sessions of this node cannot be reported; trying again");
        }
    }
}

async fn report(
    engine: &Engine,
    sessions: &SmppSessions,
    reported_as: &mut Option<NodeId>,
) -> Result<(), StoreError> {
    let users = &engine.smpp_users;
    let node = users.node();
    if reported_as.replace(node) != Some(node) {
        sessions.report_all();
    }
    let (changed, ended) = sessions.take_report(MOST, engine.now());
    let stored = users.report_sessions(node, &changed, &ended).await;
    if stored.is_err() {
        sessions.put_back_report(&changed, ended);
    }
    stored
}
