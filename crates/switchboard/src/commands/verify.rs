//! `switchboard verify …`

use std::collections::HashMap;
use std::sync::Arc;

use domain::AccountId;
use domain::verify::PrefixConversion;
use engine::clock::SystemClock;
use engine::{Accounts, Conversions};
use serde_json::{Value, json};

use super::{print_json, store};
use crate::cli::VerifyCommand;
use crate::config::Config;

/// How many prefixes are shown: those with the most codes.
const MOST: u32 = 1000;

/// The names of accounts.
type AccountNames = HashMap<AccountId, String>;

pub(super) async fn run(config: &Config, command: VerifyCommand) -> anyhow::Result<()> {
    let VerifyCommand::Prefixes { output } = command;
    let store = store(config).await?;
    let accounts = Accounts::new(store.clone(), Arc::new(SystemClock));
    let accounts = accounts.list().await?.into_iter();
    let names: AccountNames = accounts.map(|account| (account.id, account.name)).collect();
    let conversions = Conversions::new(store, Arc::new(SystemClock));
    let prefixes = conversions.list(None, MOST).await?;
    if output.json {
        print_json(&prefixes.iter().map(|one| as_json(one, &names)).collect());
        return Ok(());
    }
    println!(
        "{:<8}  {:<16}  {:>8}  {:>8}  STATE",
        "PREFIX", "ACCOUNT", "SENT", "APPROVED"
    );
    for prefix in &prefixes {
        let counts = prefix.conversion;
        println!(
            "{:<8}  {:<16}  {:>8}  {:>8}  {}",
            prefix.prefix,
            account(prefix, &names),
            counts.sent,
            counts.approved,
            if prefix.is_slowed() { "slowed" } else { "fine" },
        );
    }
    Ok(())
}

fn account<'a>(prefix: &PrefixConversion, names: &'a AccountNames) -> &'a str {
    names.get(&prefix.account).map_or("?", String::as_str)
}

fn as_json(prefix: &PrefixConversion, names: &AccountNames) -> Value {
    json!({
        "prefix": prefix.prefix,
        "account": account(prefix, names),
        "sent": prefix.conversion.sent,
        "approved": prefix.conversion.approved,
        "slowed": prefix.is_slowed(),
    })
}
