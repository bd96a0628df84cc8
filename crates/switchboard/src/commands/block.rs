//! `switchboard block …`

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use domain::block::{BlockRecord, BlockRule};
use engine::clock::SystemClock;
use engine::{Actor, Blocks};
use serde_json::{Value, json};

use super::{TIME, print_json, store};
use crate::cli::{BlockCommand, BlockValue, Output};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: BlockCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let blocks = Blocks::new(store.clone(), store, Arc::new(SystemClock), None);
    match command {
        BlockCommand::Add(args) => {
            let rule = rule(&args.rule)?;
            let added = blocks.add(&Actor::command_line(), &rule).await?;
            report(
                &rule,
                if added {
                    "is blocked now"
                } else {
                    "was blocked already"
                },
                args.output,
            );
        }
        BlockCommand::Remove(args) => {
            let rule = rule(&args.rule)?;
            let removed = blocks.remove(&Actor::command_line(), &rule).await?;
            ensure!(
                removed,
                "{rule} is not on the block list; `block list` shows it"
            );
            report(&rule, "is not blocked any more", args.output);
        }
        BlockCommand::List { output } => {
            let records = blocks.list().await?;
            if output.json {
                print_json(&records.iter().map(as_json).collect());
            } else {
                println!("{:<6}  {:<20}  SINCE", "KIND", "VALUE");
                for record in records {
                    let (rule, since) = (record.rule, record.since.strftime(TIME));
                    println!(
                        "{:<6}  {:<20}  {since}",
                        rule.kind().name(),
                        rule.shown_value()
                    );
                }
            }
        }
    }
    Ok(())
}

fn rule(value: &BlockValue) -> anyhow::Result<BlockRule> {
    let rule = value.rule()?;
    rule.context("give one of --number, --prefix, --sender and --word")
}

fn report(rule: &BlockRule, what: &str, output: Output) {
    if output.json {
        print_json(&json!({ "kind": rule.kind().name(), "value": rule.shown_value() }));
    } else {
        println!("{rule} {what}.");
    }
}

fn as_json(record: &BlockRecord) -> Value {
    json!({
        "kind": record.rule.kind().name(),
        "value": record.rule.shown_value(),
        "since": record.since.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    })
}
