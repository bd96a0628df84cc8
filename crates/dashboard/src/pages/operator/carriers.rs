//! The state of all carriers on all nodes.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::NodeCarrierStatus;
use engine::catalogue::plans::{PlanSource, PlannedCarrier};
use http::StatusCode;

use super::plan::{failed, with_notice};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, count};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;

#[derive(Template)]
#[template(path = "operator/carriers.html")]
struct CarriersPage {
    frame: Frame,
    is_simulated: bool,
    table: CarrierTable,
    configured: Vec<ConfiguredRow>,
}

/// A carrier of the file or of the database.
struct ConfiguredRow {
    name: String,
    kind: &'static str,
    channels: String,
    source: &'static str,
    is_changeable: bool,
    is_testable: bool,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "operator/carriers_table.html")]
struct TablePart {
    table: CarrierTable,
}

struct CarrierTable {
    rows: Vec<CarrierRow>,
    /// Carriers of the configuration that no living node runs.
    idle: Vec<String>,
}

struct CarrierRow {
    name: String,
    kind: String,
    node: u64,
    health: &'static str,
    /// Links that are up, of the links of this node.
    links: String,
    /// Links over all nodes.
    links_total: String,
    under_way: String,
    window: String,
    waiting: String,
    per_second: String,
    note: String,
    at: Moment,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let plan = dashboard.plans.list().await;
    let plan = plan.map_err(|error| failed(&operator, error))?;
    let page = CarriersPage {
        frame: with_notice(operator.frame(), operator.said(&query)),
        is_simulated: dashboard.engine.is_simulated(),
        table: table(&dashboard).await?,
        configured: plan.carriers.into_iter().map(ConfiguredRow::from).collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
) -> Response {
    let own = dashboard.clone();
    live::stream(&dashboard, &operator, move || {
        let dashboard = own.clone();
        async move {
            let table = table(&dashboard).await?;
            Ok(Fragment::render(&TablePart { table }))
        }
    })
    .await
}

async fn table(dashboard: &Dashboard) -> Result<CarrierTable, Failure> {
    let seen = dashboard.engine.operations.list_carrier_statuses().await?;
    let plan = dashboard.engine.routing.plan();
    let idle = plan.carriers.into_iter().map(|carrier| carrier.name);
    let idle = idle.filter(|name| seen.iter().all(|seen| seen.status.name != *name));
    Ok(CarrierTable {
        idle: idle.collect(),
        rows: seen.into_iter().map(CarrierRow::from).collect(),
    })
}

impl From<PlannedCarrier> for ConfiguredRow {
    fn from(carrier: PlannedCarrier) -> Self {
        let channels: Vec<&str> = carrier.channels.iter().map(|one| one.name()).collect();
        Self {
            kind: carrier.kind,
            channels: channels.join(", "),
            source: carrier.source.name(),
            is_changeable: carrier.source == PlanSource::Database,
            is_testable: carrier.is_testable,
            name: carrier.name,
        }
    }
}

impl From<NodeCarrierStatus> for CarrierRow {
    fn from(seen: NodeCarrierStatus) -> Self {
        let status = seen.status;
        let state = status.state.clone();
        let shown = |number: u32| count(number.into());
        Self {
            node: seen.node.get(),
            health: state.health.name(),
            links: match state.links_total {
                0 => "–".to_owned(),
                _ => format!("{} of {}", state.links_up, state.links),
            },
            links_total: match state.links_total {
                0 => "–".to_owned(),
                total => shown(total.into()),
            },
            under_way: shown(status.under_way),
            window: shown(status.window),
            waiting: shown(status.waiting),
            per_second: shown(status.per_second),
            note: state.note.clone().unwrap_or_default(),
            at: seen.at.into(),
            name: status.name,
            kind: status.kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::NodeId;
    use domain::ports::{CarrierState, CarrierStatus, Health};

    use super::*;

    /// A note quotes text of the carrier.
    #[test]
    fn text_of_a_carrier_is_escaped() {
        let seen = NodeCarrierStatus {
            node: NodeId::new(1).expect("in range"),
            at: domain::Timestamp::UNIX_EPOCH,
            status: CarrierStatus {
                name: "alpha".to_owned(),
                kind: "smpp".to_owned(),
                state: CarrierState {
                    health: Health::Down,
                    links_up: 1,
                    links: 2,
                    links_total: 4,
                    note: Some("it said <script>alert(1)</script>".to_owned()),
                },
                waiting: 12_345,
                under_way: 3,
                window: 10,
                per_second: 7,
            },
        };
        let table = TablePart {
            table: CarrierTable {
                rows: vec![seen.into()],
                idle: vec!["<b>beta</b>".to_owned()],
            },
        };
        let html = table.render().expect("it renders");
        for expected in [
            "&#60;script&#62;",
            "&#60;b&#62;beta",
            "1 of 2",
            ">4</td>",
            "3 of 10",
            "12,345",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        assert!(
            !html.contains("<script>") && !html.contains("<b>"),
            "{html}"
        );
    }
}
