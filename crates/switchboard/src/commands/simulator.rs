//! `switchboard simulator …`

use std::sync::Arc;

use engine::clock::SystemClock;
use engine::inbound::Composer;
use engine::{Catalogues, OptOuts, SimulatedHandset};
use outbound::simulator;
use serde_json::json;

use super::{print_json, store};
use crate::cli::SimulatorCommand;
use crate::config::Config;

/// The most messages that an inbox shows.
const INBOX: u32 = 1000;

pub(super) async fn run(config: &Config, command: SimulatorCommand) -> anyhow::Result<()> {
    match command {
        SimulatorCommand::Numbers { output } => {
            if output.json {
                let numbers = simulator::magic_numbers().map(|magic| {
                    json!({ "number": magic.number, "channel": magic.channel.name(), "outcome": magic.outcome, "code": magic.code })
                });
                print_json(&numbers.collect());
            } else {
                println!("{:<14}  {:<7}  {:<9}  CODE", "NUMBER", "CHANNEL", "OUTCOME");
                for magic in simulator::magic_numbers() {
                    let code = domain::Code::new(magic.code)
                        .map_or_else(String::new, |code| code.to_string());
                    println!(
                        "{:<14}  {:<7}  {:<9}  {code}",
                        magic.number,
                        magic.channel.name(),
                        magic.outcome
                    );
                }
            }
        }
        SimulatorCommand::Reply {
            from,
            to,
            text,
            output,
        } => {
            let store = store(config).await?;
            let clock = Arc::new(SystemClock);
            let catalogues = Catalogues::start(store.clone(), clock.clone()).await?;
            let (lists, audit) = (store.clone(), store.clone());
            let opt_outs = Arc::new(OptOuts::new(lists, audit, clock.clone(), None));
            let composer = Composer::new(store.clone(), catalogues, opt_outs, config.words());
            let handset = SimulatedHandset::new(store, clock, composer);
            let id = handset.send(&from, to, &text).await?.to_string();
            if output.json {
                print_json(&json!({ "id": id }));
            } else {
                println!("Sent as message {id}.");
            }
        }
        SimulatorCommand::Inbox { number, output } => {
            let messages = store(config)
                .await?
                .list_inbox(simulator::NAME, &number, INBOX)
                .await?;
            if output.json {
                let messages = messages.iter().map(|message| {
                    let at = message.at.to_string();
                    json!({ "from": message.from, "to": number.to_string(), "message": message.text, "at": at })
                });
                print_json(&messages.collect());
            } else if messages.is_empty() {
                println!("{number} has received nothing.");
            } else {
                for message in messages {
                    println!(
                        "{}  from {}\n  {}\n",
                        message.at.strftime("%Y-%m-%d %H:%M:%SZ"),
                        message.from,
                        message.text
                    );
                }
            }
        }
    }
    Ok(())
}
