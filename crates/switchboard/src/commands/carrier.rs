//! `switchboard carrier …`

mod plan;
mod route;
mod test;

use domain::ports::NodeCarrierStatus;
use outbound::http::PROOF_PURPOSE;
use serde_json::{Value, json};

use super::{print_json, store};
use crate::cli::{CarrierCommand, Output, PresetCommand};
use crate::config::Config;
use crate::config::carriers::Carrier;
use crate::config::presets::{PRESETS, Preset};
use crate::stored_plan::addresses::{base_url, inbound_url};
use crate::stored_plan::{all_carriers, source};

pub(super) use route::run as run_route;

/// The health of a configured carrier that no running node has.
const NOT_RUNNING: &str = "not running";

pub(super) async fn run(config: &Config, command: CarrierCommand) -> anyhow::Result<()> {
    match command {
        CarrierCommand::List { output } => list(config, output).await,
        CarrierCommand::Preset(command) => preset(command),
        CarrierCommand::Test(arguments) => test::run(config, &arguments).await,
        CarrierCommand::Set(arguments) => plan::set_carrier(config, &arguments).await,
        CarrierCommand::Remove { name } => plan::remove_carrier(config, &name).await,
        CarrierCommand::Show { name } => plan::show(config, &name).await,
        CarrierCommand::History { output } => plan::history(config, output).await,
        CarrierCommand::Undo { to } => plan::undo(config, to).await,
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
    let configured = all_carriers(config, &store).await?;
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
            carrier["source"] = json!(own.map(|own| source(config, own).name()));
        }
        print_json(&carriers.into());
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
