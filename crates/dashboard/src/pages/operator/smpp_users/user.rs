//! One SMPP user: its sessions over all nodes, and its options.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::smpp_user::{SessionPdu, SessionReport, SmppSession, SmppUser, StatusCount};
use domain::{NodeId, SmppUserId};
use engine::identity::smpp_users::{SmppUserChange, SmppUserError};
use http::StatusCode;

use super::fields::{self, Choices};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::{Moment, count};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

/// Only so many sessions are shown; the sums contain all.
const SHOWN: usize = 100;
const SECONDS_A_MINUTE: u64 = 60;

#[derive(Template)]
#[template(path = "operator/smpp_user.html")]
struct UserPage {
    frame: Frame,
    id: u64,
    system_id: String,
    account: u64,
    account_name: String,
    created: Moment,
    input: FormInput,
    choices: Choices,
    sessions: Sessions,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "operator/smpp_user_sessions.html")]
struct SessionsPart {
    sessions: Sessions,
}

struct Sessions {
    rows: Vec<SessionRow>,
    /// How many sessions are not shown.
    hidden: Option<String>,
    bound: String,
    accepted: String,
    /// Accepted messages a second, over the last minute.
    per_second: String,
    refused: Refusals,
    acknowledged: String,
    rejected: Refusals,
}

/// How many were refused, and for which reasons.
struct Refusals {
    total: String,
    /// Each status with its count, the most frequent first.
    by_status: Vec<(String, String)>,
}

struct SessionRow {
    node: u64,
    number: u64,
    kind: &'static str,
    address: String,
    is_tls: bool,
    bound: Moment,
    active: Moment,
    open_requests: u32,
    open_deliveries: u32,
    accepted: String,
    refused: String,
    acknowledged: String,
    rejected: String,
    /// Newest first.
    pdus: Vec<PduRow>,
}

struct PduRow {
    at: Moment,
    direction: &'static str,
    command: String,
    sequence: u32,
    status: String,
    message: Option<u64>,
    octets: u32,
}

impl Sessions {
    fn new(sessions: &[(NodeId, SmppSession)]) -> Self {
        let reports = || sessions.iter().map(|(_, session)| &session.report);
        let sum = |number: fn(&SessionReport) -> u64| -> u64 { reports().map(number).sum() };
        let last_minute = sum(|report| report.accepted_last_minute.into());
        let hidden = sessions.len().saturating_sub(SHOWN);
        Self {
            hidden: (hidden > 0).then(|| count(hidden as u64)),
            bound: count(sessions.len() as u64),
            accepted: count(sum(|report| report.accepted)),
            per_second: per_second(last_minute),
            refused: Refusals::new(reports().flat_map(|report| &report.refused)),
            acknowledged: count(sum(|report| report.acknowledged)),
            rejected: Refusals::new(reports().flat_map(|report| &report.rejected)),
            rows: sessions
                .iter()
                .take(SHOWN)
                .map(|(node, session)| SessionRow::new(*node, session))
                .collect(),
        }
    }
}

/// A rate over one minute, with one decimal.
fn per_second(a_minute: u64) -> String {
    let tenths = (a_minute * 10).div_ceil(SECONDS_A_MINUTE);
    format!("{}.{}", count(tenths / 10), tenths % 10)
}

impl Refusals {
    fn new<'a>(counts: impl Iterator<Item = &'a StatusCount>) -> Self {
        let mut by_status: BTreeMap<&str, u64> = BTreeMap::new();
        for one in counts {
            *by_status.entry(&one.status).or_default() += one.count;
        }
        let mut by_status: Vec<(&str, u64)> = by_status.into_iter().collect();
        by_status.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        Self {
            total: count(by_status.iter().map(|(_, number)| number).sum()),
            by_status: by_status
                .into_iter()
                .map(|(status, number)| (status.to_owned(), count(number)))
                .collect(),
        }
    }
}

impl SessionRow {
    fn new(node: NodeId, session: &SmppSession) -> Self {
        let report = &session.report;
        let sum = |counts: &[StatusCount]| count(counts.iter().map(|one| one.count).sum());
        Self {
            node: node.get(),
            number: session.number,
            kind: report.kind.name(),
            address: report.address.to_string(),
            is_tls: report.is_tls,
            bound: report.bound_at.into(),
            active: report.active_at.into(),
            open_requests: report.open_requests,
            open_deliveries: report.open_deliveries,
            accepted: count(report.accepted),
            refused: sum(&report.refused),
            acknowledged: count(report.acknowledged),
            rejected: sum(&report.rejected),
            pdus: report.pdus.iter().rev().map(PduRow::from).collect(),
        }
    }
}

impl From<&SessionPdu> for PduRow {
    fn from(pdu: &SessionPdu) -> Self {
        Self {
            at: pdu.at.into(),
            direction: if pdu.is_incoming {
                "from client"
            } else {
                "to client"
            },
            command: pdu.command.clone(),
            sequence: pdu.sequence,
            status: pdu.status.clone().unwrap_or_default(),
            message: pdu.message,
            octets: pdu.octets,
        }
    }
}

pub(in crate::pages::operator) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, Failure> {
    let user = find(&dashboard, &operator, &id).await?;
    let frame = match operator.said(&query) {
        Some("changed") => operator
            .frame()
            .with_success("Changed. All nodes follow within a second."),
        _ => operator.frame(),
    };
    let input = FormInput::with_defaults(fields::filled(&user.options()));
    page(&dashboard, frame, &user, input).await
}

pub(in crate::pages::operator) async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let user = find(&dashboard, &operator, &id).await?.id;
    let own = dashboard.clone();
    let stream = live::stream(&dashboard, &operator, move || {
        let dashboard = own.clone();
        async move {
            let sessions = sessions(&dashboard, user).await?;
            Ok(Fragment::render(&SessionsPart { sessions }))
        }
    });
    Ok(stream.await)
}

pub(in crate::pages::operator) async fn change(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let user = find(&dashboard, &operator, &id).await?;
    let mut input = FormInput::from_form(&form, &fields::OPTIONS);
    let options = fields::read(&mut input);
    if input.is_refused() {
        return page(&dashboard, operator.frame(), &user, input).await;
    }
    let address = format!("{}/{}", super::HERE, user.id);
    let question = Question {
        title: &format!("Change the SMPP user {}?", user.system_id),
        text: "The options decide from where it may bind and what it may send.",
        button: "Save",
        back: &address,
        is_dangerous: false,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let change = SmppUserChange::from(options);
    let users = &dashboard.engine.smpp_user_registry;
    match users.change(&operator.by(), &user.system_id, change).await {
        Ok(()) => {}
        Err(SmppUserError::Store(error)) => return Err(error.into()),
        // It was revoked meanwhile.
        Err(_) => return Err(Failure::NotFound(Box::new(operator.frame()))),
    }
    Ok(operator.redirect_saying(&address, "changed"))
}

async fn find(dashboard: &Dashboard, operator: &Operator, id: &str) -> Result<SmppUser, Failure> {
    let not_found = || Failure::NotFound(Box::new(operator.frame()));
    let id: SmppUserId = id.parse().map_err(|_| not_found())?;
    let user = dashboard.engine.smpp_user_registry.find(id).await?;
    user.ok_or_else(not_found)
}

async fn sessions(dashboard: &Dashboard, user: SmppUserId) -> Result<Sessions, Failure> {
    let users = &dashboard.engine.smpp_user_registry;
    Ok(Sessions::new(&users.list_sessions(user).await?))
}

async fn page(
    dashboard: &Dashboard,
    frame: Frame,
    user: &SmppUser,
    input: FormInput,
) -> Result<Response, Failure> {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = UserPage {
        frame,
        id: user.id.get(),
        system_id: user.system_id.to_string(),
        account: user.access.account.get(),
        account_name: user.access.account_name.clone(),
        created: user.created_at.into(),
        input,
        choices: Choices::new(),
        sessions: sessions(dashboard, user.id).await?,
    };
    Ok(show_page(status, &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_decimal() {
        for (a_minute, expected) in [
            (0, "0.0"),
            (1, "0.1"),
            (60, "1.0"),
            (90, "1.5"),
            (600, "10.0"),
        ] {
            assert_eq!(per_second(a_minute), expected);
        }
    }

    #[test]
    fn refusals_are_added_up_and_sorted() {
        let one = |status: &str, count| StatusCount {
            status: status.to_owned(),
            count,
        };
        let counts = [
            one("ESME_RINVDSTADR", 2),
            one("ESME_RTHROTTLED", 7),
            one("ESME_RINVDSTADR", 1),
        ];
        let refusals = Refusals::new(counts.iter());
        assert_eq!(refusals.total, "10");
        let expected = [("ESME_RTHROTTLED", "7"), ("ESME_RINVDSTADR", "3")];
        let expected = expected.map(|(status, count)| (status.to_owned(), count.to_owned()));
        assert_eq!(refusals.by_status, expected);
    }
}
