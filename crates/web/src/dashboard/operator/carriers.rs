//! How the carriers of every node do.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::CarrierSeen;
use http::StatusCode;

use crate::dashboard::Dashboard;
use crate::dashboard::page::{Failure, Frame, show as show_page};
use crate::dashboard::shown::{Moment, count};
use crate::dashboard::visitor::Operator;

#[derive(Template)]
#[template(path = "operator/carriers.html")]
struct Page {
    frame: Frame,
    table: Carriers,
}

/// The part that changes by itself.
#[derive(Template)]
#[template(path = "operator/carriers_table.html")]
struct Table {
    table: Carriers,
}

struct Carriers {
    rows: Vec<Row>,
    /// Carriers of the plan that no living node has.
    idle: Vec<String>,
}

struct Row {
    name: String,
    kind: String,
    node: u64,
    health: &'static str,
    links: String,
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
) -> Result<Response, Failure> {
    let page = Page {
        frame: operator.frame(),
        table: table(&dashboard).await?,
    };
    Ok(show_page(StatusCode::OK, &page))
}

async fn table(dashboard: &Dashboard) -> Result<Carriers, Failure> {
    let seen = dashboard.engine.operations.list_carriers().await?;
    let plan = dashboard.engine.routing.plan();
    let idle = plan.carriers.into_iter().map(|carrier| carrier.name);
    let idle = idle.filter(|name| seen.iter().all(|seen| seen.note.name != *name));
    Ok(Carriers {
        idle: idle.collect(),
        rows: seen.into_iter().map(Row::from).collect(),
    })
}

impl From<CarrierSeen> for Row {
    fn from(seen: CarrierSeen) -> Self {
        let note = seen.note;
        let state = note.state.clone();
        let shown = |number: u32| count(number.into());
        Self {
            node: seen.node.get(),
            health: state.health.name(),
            links: match state.links {
                0 => "–".to_owned(),
                links => format!("{} of {links}", state.links_up),
            },
            under_way: shown(note.under_way),
            window: shown(note.window),
            waiting: shown(note.waiting),
            per_second: shown(note.per_second),
            note: state.note.clone().unwrap_or_default(),
            at: seen.at.into(),
            name: note.name,
            kind: note.kind,
        }
    }
}
