//! `switchboard carrier …`

use domain::ports::NodeCarrierStatus;
use serde_json::{Value, json};

use super::{print_json, store};
use crate::cli::CarrierCommand;
use crate::config::Config;
use crate::config::carriers::Carrier;

/// The health of a configured carrier that no running node has.
const NOT_RUNNING: &str = "not running";

pub(super) async fn run(config: &Config, command: CarrierCommand) -> anyhow::Result<()> {
    let CarrierCommand::List { output } = command;
    let seen = store(config).await?.list_carrier_statuses().await?;
    let configured = config.carriers();
    let idle: Vec<&Carrier> = configured
        .iter()
        .filter(|carrier| !seen.iter().any(|seen| seen.status.name == carrier.name()))
        .collect();
    if output.json {
        let seen = seen.iter().map(seen_json);
        let idle = idle.into_iter().map(idle_json);
        print_json(&seen.chain(idle).collect());
    } else {
        print_table(&seen, &idle);
    }
    Ok(())
}

fn seen_json(seen: &NodeCarrierStatus) -> Value {
    let (status, state) = (&seen.status, &seen.status.state);
    json!({
        "name": status.name,
        "kind": status.kind,
        "health": state.health.name(),
        "linksUp": state.links_up,
        "links": state.links,
        "linksTotal": state.links_total,
        "waiting": status.waiting,
        "underWay": status.under_way,
        "note": state.note,
        "node": seen.node.get(),
        "at": seen.at.to_string(),
    })
}

fn idle_json(carrier: &Carrier) -> Value {
    json!({
        "name": carrier.name(),
        "kind": carrier.kind(),
        "health": NOT_RUNNING,
        "linksUp": 0,
        "links": 0,
        "linksTotal": 0,
        "waiting": 0,
        "underWay": 0,
        "note": null,
        "node": null,
        "at": null,
    })
}

fn print_table(seen: &[NodeCarrierStatus], idle: &[&Carrier]) {
    let head = [
        "NAME",
        "KIND",
        "HEALTH",
        "LINKS",
        "WAITING",
        "UNDER WAY",
        "NODE",
    ];
    print_row(head.map(str::to_owned), "NOTE");
    for seen in seen {
        let (status, state) = (&seen.status, &seen.status.state);
        let links = match state.links_total {
            0 => "-".to_owned(),
            total if total == state.links => format!("{}/{total}", state.links_up),
            total => format!("{}/{} of {total}", state.links_up, state.links),
        };
        let cells = [
            status.name.clone(),
            status.kind.clone(),
            state.health.name().to_owned(),
            links,
            status.waiting.to_string(),
            status.under_way.to_string(),
            seen.node.to_string(),
        ];
        print_row(cells, state.note.as_deref().unwrap_or_default());
    }
    for carrier in idle {
        let none = || "-".to_owned();
        let cells = [
            carrier.name().to_owned(),
            carrier.kind().to_owned(),
            NOT_RUNNING.to_owned(),
            none(),
            none(),
            none(),
            none(),
        ];
        print_row(cells, "");
    }
}

fn print_row(cells: [String; 7], note: &str) {
    let [name, kind, health, links, waiting, under_way, by] = cells;
    let row = format!(
        "{name:<16}  {kind:<9}  {health:<11}  {links:>9}  {waiting:>7}  {under_way:>9}  {by:>4}  {note}"
    );
    println!("{}", row.trim_end());
}
