//! `switchboard account ledger` and `switchboard account check`

use anyhow::ensure;
use domain::billing::LedgerEntry;
use domain::ports::Imbalance;
use engine::Accounts;
use serde_json::json;

use crate::cli::Output;
use crate::commands::{TIME, print_json};

pub(super) async fn show(
    accounts: &Accounts,
    name: &str,
    limit: u32,
    output: Output,
) -> anyhow::Result<()> {
    let entries = accounts.ledger(name, limit).await?;
    if output.json {
        print_json(&entries.iter().map(as_json).collect());
    } else if entries.is_empty() {
        println!("Nothing has changed the balance of account '{name}' yet.");
    } else {
        print_table(&entries);
    }
    Ok(())
}

/// Checks every ledger; an imbalance is an error.
pub(super) async fn check(accounts: &Accounts, output: Output) -> anyhow::Result<()> {
    let checked = accounts.list().await?.len();
    let imbalances = accounts.check_ledger().await?;
    if output.json {
        let found: Vec<_> = imbalances.iter().map(imbalance_as_json).collect();
        print_json(&json!({ "accounts": checked, "imbalances": found }));
    } else {
        for imbalance in &imbalances {
            println!("{}", in_words(imbalance));
        }
    }
    ensure!(
        imbalances.is_empty(),
        "the ledger does not match the balance of {} of {checked} accounts; keep a copy of the database, then compare with `switchboard account ledger NAME`",
        imbalances.len()
    );
    if !output.json {
        println!("Accounts checked: {checked}, all balanced.");
    }
    Ok(())
}

fn in_words(imbalance: &Imbalance) -> String {
    let Imbalance {
        account,
        balance,
        entries,
        broken_steps,
    } = imbalance;
    format!(
        "account '{account}': the balance is {balance}, the ledger gives {entries}, {broken_steps} entries do not continue the previous balance"
    )
}

fn imbalance_as_json(imbalance: &Imbalance) -> serde_json::Value {
    json!({
        "account": imbalance.account,
        "balance": imbalance.balance.to_string(),
        "entries": imbalance.entries.to_string(),
        "brokenSteps": imbalance.broken_steps,
    })
}

fn as_json(entry: &LedgerEntry) -> serde_json::Value {
    json!({
        "at": entry.at.to_string(),
        "kind": entry.kind.name(),
        "amount": entry.amount.to_string(),
        "balance": entry.balance.to_string(),
        "messages": entry.messages,
        "note": entry.note,
    })
}

fn print_table(entries: &[LedgerEntry]) {
    println!(
        "{:<20}  {:<6}  {:>14}  {:>14}  {:>8}  NOTE",
        "TIME", "KIND", "AMOUNT", "BALANCE", "MESSAGES"
    );
    for entry in entries {
        let at = entry.at.strftime(TIME).to_string();
        let (amount, balance) = (entry.amount.to_string(), entry.balance.to_string());
        println!(
            "{at:<20}  {:<6}  {amount:>14}  {balance:>14}  {:>8}  {}",
            entry.kind.name(),
            entry.messages,
            entry.note.as_deref().unwrap_or_default()
        );
    }
}
