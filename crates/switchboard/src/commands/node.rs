//! `switchboard node …`

use domain::ports::NodeStatus;
use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use serde_json::{Value, json};

use super::{print_json, store};
use crate::cli::NodeCommand;
use crate::config::Config;

pub(super) async fn run(config: &Config, command: NodeCommand) -> anyhow::Result<()> {
    let NodeCommand::List { output } = command;
    let nodes = store(config).await?.list_nodes().await?;
    if output.json {
        print_json(&nodes.iter().map(as_json).collect());
    } else {
        print_table(&nodes, SystemClock.now());
    }
    Ok(())
}

/// A capped count is a string with a plus in tables; in JSON it is a number and `holdsMore`.
fn as_json(node: &NodeStatus) -> Value {
    let facts = node.facts.as_ref();
    let info = facts.map(|facts| &facts.info);
    json!({
        "node": node.node.get(),
        "state": state(node),
        "aliveUntil": node.alive_until.to_string(),
        "started": facts.map(|facts| facts.started_at.to_string()),
        "roles": info.map(|info| &info.roles),
        "version": info.map(|info| &info.version),
        "schema": facts.map(|facts| facts.schema),
        "host": info.map(|info| &info.host),
        "listen": info.map(|info| &info.listen),
        "holds": node.holds.0,
        "holdsMore": node.holds.is_capped(),
    })
}

fn state(node: &NodeStatus) -> &'static str {
    if node.is_dead { "dead" } else { "alive" }
}

fn print_table(nodes: &[NodeStatus], now: Timestamp) {
    let head = [
        "NODE", "STATE", "FOR", "HOLDS", "VERSION", "SCHEMA", "HOST", "LISTEN",
    ];
    print_row(head.map(str::to_owned), "ROLES");
    for node in nodes {
        let none = || "-".to_owned();
        let facts = node.facts.as_ref();
        let info = facts.map(|facts| &facts.info);
        let more = if node.holds.is_capped() { "+" } else { "" };
        let cells = [
            node.node.to_string(),
            state(node).to_owned(),
            facts.map_or_else(none, |facts| age(now, facts.started_at)),
            format!("{}{more}", node.holds.0),
            info.map_or_else(|| "older".to_owned(), |info| info.version.clone()),
            facts.map_or_else(none, |facts| facts.schema.to_string()),
            info.map_or_else(none, |info| info.host.clone()),
            info.map_or_else(none, |info| info.listen.clone()),
        ];
        let roles = info.map_or_else(none, |info| info.roles.join(","));
        print_row(cells, &roles);
    }
}

fn print_row(cells: [String; 8], roles: &str) {
    let [node, state, age, holds, version, schema, host, listen] = cells;
    println!(
        "{node:>5}  {state:<5}  {age:>7}  {holds:>6}  {version:<9}  {schema:>6}  {host:<20}  {listen:<21}  {roles}"
    );
}

/// A time span in its two largest units. Clocks of machines may differ a little.
fn age(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_the_units_that_matter() {
        let since = Timestamp::from_second(1_000_000).expect("within range");
        for (seconds, expected) in [
            (-5, "0s"),
            (59, "59s"),
            (61, "1m01s"),
            (3600, "1h00m"),
            (90_061, "1d01h"),
        ] {
            let now = since + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age(now, since), expected);
        }
    }
}
