//! The receivers of callbacks, and replaying what waits for them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::Receiver;
use engine::PausedReceiver;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, capped_count, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/hosts";
/// Only the hosts with the most callbacks are shown.
const SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "operator/hosts.html")]
struct HostsPage {
    frame: Frame,
    rows: Vec<HostRow>,
    is_cut: bool,
}

struct HostRow {
    address: String,
    host: String,
    waiting: String,
    parked: String,
    oldest: Option<Moment>,
    reason: String,
    /// Until when this process has paused the host, for at least one account.
    paused_until: Option<Moment>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let mut frame = operator.frame();
    if let Some(replayed) = operator.said_count(&query, "replayed") {
        frame = frame.with_success(format!(
            "{} callbacks are being sent again.",
            count(replayed)
        ));
    }
    let receivers = dashboard.engine.operations.list_receivers(None).await?;
    let paused = dashboard.engine.paused_receivers();
    let page = HostsPage {
        frame,
        is_cut: receivers.len() > SHOWN,
        rows: receivers
            .into_iter()
            .take(SHOWN)
            .map(|receiver| HostRow::new(receiver, &paused))
            .collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Replays waiting and parked callbacks of all accounts for a host.
pub(super) async fn replay(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let address = form.get("address").unwrap_or_default();
    let host = address.split_once("://").map_or("", |(_, host)| host);
    let smpp_user = address.strip_prefix("smpp:").filter(|_| host.is_empty());
    let is_known = smpp_user.is_some() || !host.is_empty();
    if !is_known || smpp_user.unwrap_or(host).contains(['/', '?', '#', '\\']) {
        return Err(Failure::Form);
    }
    let reports = &dashboard.engine.reports;
    let replayed = reports.replay_receiver(&operator.by(), address).await?;
    Ok(operator.redirect_saying(HERE, &format!("replayed-{replayed}")))
}

impl HostRow {
    fn new(receiver: Receiver, paused: &[PausedReceiver]) -> Self {
        let of_host = |paused: &&PausedReceiver| paused.origin.as_str() == receiver.address;
        let paused_until = paused
            .iter()
            .filter(of_host)
            .map(|paused| paused.until)
            .max();
        Self {
            waiting: capped_count(receiver.waiting),
            parked: capped_count(receiver.parked),
            oldest: receiver.oldest_at.map(Moment::from),
            reason: receiver.last_reason.unwrap_or_default(),
            paused_until: paused_until.map(Moment::from),
            address: receiver.address,
            host: receiver.host,
        }
    }
}
