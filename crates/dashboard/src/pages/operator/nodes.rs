//! The nodes, this process and the database.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::NodeId;
use domain::ports::{NodeCarrierStatus, NodeStatus};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, capped_count, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Operator;

#[derive(Template)]
#[template(path = "operator/nodes.html")]
struct NodesPage {
    frame: Frame,
    nodes: Vec<NodeRow>,
    version: &'static str,
    started: Moment,
    is_worker: bool,
    has_worker: bool,
    product: &'static str,
    product_version: String,
    schema: u32,
    size: String,
}

struct NodeRow {
    id: u64,
    is_this: bool,
    state: &'static str,
    until: Moment,
    holds: String,
    carriers: String,
    /// Nodes of old versions do not tell it.
    started: Option<Moment>,
    version: String,
    listens_on: String,
    roles: String,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
) -> Result<Response, Failure> {
    let operations = &dashboard.engine.operations;
    let nodes = operations.list_nodes().await?;
    let carriers = operations.list_carrier_statuses().await?;
    let database = operations.describe_database().await?;
    let this = dashboard.engine.node();
    let page = NodesPage {
        frame: operator.frame(),
        nodes: nodes
            .iter()
            .map(|node| NodeRow::new(node, this, &carriers))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
        started: operations.started_at().into(),
        has_worker: nodes.iter().any(|node| {
            let facts = node.facts.as_ref();
            !node.is_dead && facts.is_none_or(|facts| facts.info.works)
        }),
        is_worker: dashboard.engine.works(),
        product: database.product,
        product_version: database.version,
        schema: database.schema,
        size: bytes(database.bytes),
    };
    Ok(show_page(StatusCode::OK, &page))
}

impl NodeRow {
    fn new(node: &NodeStatus, this: NodeId, carriers: &[NodeCarrierStatus]) -> Self {
        let own = carriers.iter().filter(|seen| seen.node == node.node);
        let own: Vec<&str> = own.map(|seen| seen.status.name.as_str()).collect();
        let facts = node.facts.as_ref();
        Self {
            id: node.node.get(),
            is_this: this == node.node,
            state: if node.is_dead { "dead" } else { "alive" },
            until: node.alive_until.into(),
            holds: capped_count(node.holds),
            carriers: own.join(", "),
            started: facts.map(|facts| facts.started_at.into()),
            version: facts.map_or_else(
                || "older".to_owned(),
                |facts| format!("{}, schema {}", facts.info.version, facts.schema),
            ),
            listens_on: facts.map_or_else(String::new, |facts| {
                format!("{} ({})", facts.info.host, facts.info.listen)
            }),
            roles: facts.map_or_else(String::new, |facts| facts.info.roles.join(", ")),
        }
    }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    let unit = UNITS.into_iter().find(|(_, size)| bytes >= *size);
    match unit {
        None => format!("{bytes} bytes"),
        Some((name, size)) => {
            let tenths = bytes / (size / 10);
            format!("{}.{} {name}", count(tenths / 10), tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suitable_units() {
        for (size, expected) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (1_250_000, "1.2 MB"),
            (1_234_567_890_123, "1,234.5 GB"),
        ] {
            assert_eq!(bytes(size), expected);
        }
    }
}
