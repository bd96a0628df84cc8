//! What nodes report about the sessions of SMPP users.

use std::net::Ipv4Addr;
use std::sync::Arc;

use domain::ports::Store;
use domain::smpp_user::{BindKind, SessionReport, SmppSession};
use domain::{NodeId, SmppUserId};
use jiff::SignedDuration;

use super::sample::at;
use super::steps::{join, join_for};

on_both_stores!(sessions_are_reported_and_vanish);

fn session(user: SmppUserId, number: u64, accepted: u64) -> SmppSession {
    SmppSession {
        number,
        user,
        report: SessionReport {
            kind: BindKind::Transmitter,
            address: Ipv4Addr::LOCALHOST.into(),
            is_tls: false,
            bound_at: at(7),
            active_at: at(8),
            open_requests: 0,
            open_deliveries: 0,
            accepted,
            accepted_last_minute: 0,
            refused: Vec::new(),
            acknowledged: 0,
            rejected: Vec::new(),
            pdus: Vec::new(),
        },
    }
}

async fn sessions_are_reported_and_vanish(store: Arc<dyn Store>) {
    let user = |id| SmppUserId::new(id).expect("an ID");
    let (acme, other) = (user(1), user(2));
    let (one, two, dead) = (
        join(&store).await,
        join(&store).await,
        join_for(&store, SignedDuration::from_secs(-1)).await,
    );
    let report = async |node: NodeId, changed: &[SmppSession], ended: &[u64]| {
        let reported = store.report_smpp_sessions(node, changed, ended).await;
        reported.expect("answers");
    };
    // Numbers are unique on a node only, and the first one is 0.
    let first = [
        session(acme, 0, 1),
        session(acme, 1, 1),
        session(other, 2, 1),
    ];
    report(one, &first, &[]).await;
    report(two, &[session(acme, 0, 2)], &[]).await;
    report(dead, &[session(acme, 0, 3)], &[]).await;
    let listed = async |user| -> Vec<(NodeId, u64, u64)> {
        let sessions = store.list_smpp_sessions(user).await.expect("answers");
        let sessions = sessions.into_iter();
        sessions
            .map(|(node, session)| (node, session.number, session.report.accepted))
            .collect()
    };
    assert_eq!(listed(acme).await, [(one, 0, 1), (one, 1, 1), (two, 0, 2)]);
    let whole = store.list_smpp_sessions(other).await.expect("answers");
    assert_eq!(whole, [(one, first[2].clone())]);

    // A later report replaces the earlier one, and ended sessions are deleted.
    report(one, &[session(acme, 1, 9)], &[0, 77]).await;
    assert_eq!(listed(acme).await, [(one, 1, 9), (two, 0, 2)]);
    assert_eq!(listed(other).await.len(), 1);
    report(one, &[], &[2]).await;
    assert!(listed(other).await.is_empty());
    store.leave(two).await.expect("answers");
    assert_eq!(listed(acme).await, [(one, 1, 9)]);
}
