//! `switchboard carrier …`

mod test;

use domain::encryption::KEY_BYTES;
use domain::ports::{NodeCarrierStatus, Store};
use outbound::http::{CarrierLinks, PROOF_PURPOSE};
use serde_json::{Value, json};

use super::{print_json, store};
use crate::carriers::upstream_settings;
use crate::cli::{CarrierCommand, Output, PresetCommand};
use crate::config::Config;
use crate::config::carriers::Carrier;
use crate::config::presets::{PRESETS, Preset};

/// The health of a configured carrier that no running node has.
const NOT_RUNNING: &str = "not running";

pub(super) async fn run(config: &Config, command: CarrierCommand) -> anyhow::Result<()> {
    match command {
        CarrierCommand::List { output } => list(config, output).await,
        CarrierCommand::Preset(command) => preset(command),
        CarrierCommand::Test(arguments) => test::run(config, &arguments).await,
    }
}

fn preset(command: PresetCommand) -> anyhow::Result<()> {
    match command {
        PresetCommand::List { output } if output.json => {
            let preset = |preset: &Preset| json!({ "name": preset.name, "title": preset.title() });
            print_json(&PRESETS.iter().map(preset).collect());
        }
        PresetCommand::List { .. } => {
            for preset in &PRESETS {
                println!("{:<24}  {}", preset.name, preset.title());
            }
        }
        PresetCommand::Show { name } => print!("{}", Preset::find(&name)?.text),
    }
    Ok(())
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let store = store(config).await?;
    let seen = store.list_carrier_statuses().await?;
    let configured = config.carriers();
    let idle: Vec<&Carrier> = configured
        .iter()
        .filter(|carrier| !seen.iter().any(|seen| seen.status.name == carrier.name()))
        .collect();
    if output.json {
        let seen = seen.iter().map(seen_json);
        let idle = idle.into_iter().map(idle_json);
        let keys = store.derived_keys(PROOF_PURPOSE);
        let base_url = base_url(config, &*store).await?;
        let mut carriers: Vec<Value> = seen.chain(idle).collect();
        for carrier in &mut carriers {
            let own = configured.iter().find(|own| carrier["name"] == own.name());
            let url = own.map(|own| inbound_url(own, &base_url, &keys));
            carrier["inboundUrl"] = json!(url.transpose()?.flatten());
        }
        print_json(&carriers.into());
    } else {
        print_table(&seen, &idle);
    }
    Ok(())
}

/// The base URL of this service: as configured, or that of a running node that takes reports.
async fn base_url(config: &Config, store: &dyn Store) -> anyhow::Result<String> {
    let nodes = store.list_nodes().await?;
    let mut alive = nodes.iter().filter(|node| !node.is_dead);
    let listening = alive.find_map(|node| {
        let info = &node.facts.as_ref()?.info;
        info.works.then(|| info.listen.parse().ok())?
    });
    Ok(config.base_url(listening.unwrap_or(config.server.listen)))
}

/// Where a carrier sends messages from handsets, if it sends them by HTTP.
fn inbound_url(
    carrier: &Carrier,
    base_url: &str,
    keys: &[[u8; KEY_BYTES]],
) -> anyhow::Result<Option<String>> {
    match carrier {
        Carrier::Upstream(upstream) => {
            let url = upstream_settings(upstream, base_url)?.inbound_url();
            Ok(Some(url.to_string()))
        }
        Carrier::Http(carrier) if carrier.has_inbound() => {
            let base_url = carrier.reached_at(base_url)?;
            let links = CarrierLinks::new(&carrier.name, &base_url, keys);
            Ok(Some(links.inbound_url()))
        }
        Carrier::Http(_) | Carrier::Simulator(_) | Carrier::Smpp(_) => Ok(None),
    }
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
