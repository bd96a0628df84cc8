//! `switchboard account …`

mod ledger;
mod statement;

use anyhow::ensure;
use domain::billing::{RuleChange, SpendingRules};
use domain::ports::AccountRecord;
use engine::{Accounts, Actor};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{TIME, accounts, number, print_json};
use crate::cli::{AccountChange, AccountCommand, Output};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: AccountCommand) -> anyhow::Result<()> {
    if let AccountCommand::Statement {
        name,
        month,
        format,
    } = command
    {
        return statement::show(config, &name, month, format).await;
    }
    let accounts = accounts(config).await?;
    match command {
        AccountCommand::Create {
            name,
            balance,
            output,
        } => {
            let created = accounts
                .create(&Actor::command_line(), &name, balance)
                .await?;
            print_created(&created.0, &created.1, output);
        }
        AccountCommand::List { output } => {
            let list = accounts.list().await?;
            if output.json {
                print_json(&list.iter().map(as_json_with_rules).collect());
            } else {
                print_table(&list);
            }
        }
        AccountCommand::Credit {
            name,
            amount,
            note,
            output,
        } => {
            let balance = accounts
                .credit(&Actor::command_line(), &name, amount, note.as_deref(), None)
                .await?;
            if output.json {
                print_json(&json!({ "name": name, "balance": balance.to_string() }));
            } else {
                println!("Account '{name}' has a balance of {balance}.");
            }
        }
        AccountCommand::Set {
            name,
            changes,
            output,
        } => set(config, &accounts, &name, changes, output).await?,
        AccountCommand::Ledger {
            name,
            limit,
            output,
        } => ledger::show(&accounts, &name, limit, output).await?,
        AccountCommand::Check { output } => ledger::check(&accounts, output).await?,
        AccountCommand::RotateSecret {
            name,
            overlap_hours,
            output,
        } => rotate_secret(&accounts, &name, overlap_hours, output).await?,
        AccountCommand::Statement { .. } => unreachable!("answered above"),
        AccountCommand::Suspend { name } => {
            accounts
                .set_suspended(&Actor::command_line(), &name, true)
                .await?;
            println!("Account '{name}' is suspended; its tokens are refused.");
        }
        AccountCommand::Resume { name } => {
            accounts
                .set_suspended(&Actor::command_line(), &name, false)
                .await?;
            println!("Account '{name}' is resumed.");
        }
    }
    Ok(())
}

/// Makes all changes in one write, so that all of them take effect or none.
async fn set(
    config: &Config,
    accounts: &Accounts,
    name: &str,
    changes: Vec<AccountChange>,
    output: Output,
) -> anyhow::Result<()> {
    let (mut urls, mut replies) = (Vec::new(), Vec::new());
    let changes: Vec<RuleChange> = changes
        .into_iter()
        .filter_map(|change| match change {
            AccountChange::Rule(rule) => Some(rule),
            AccountChange::InboundUrl(url) => {
                urls.push(url);
                None
            }
            AccountChange::Reply(reply) => {
                replies.push(reply);
                None
            }
        })
        .collect();
    ensure!(urls.len() <= 1, "inbound_url is given twice; give it once");
    for (index, change) in changes.iter().enumerate() {
        let key = change.key();
        let is_first = changes[..index].iter().all(|before| before.key() != key);
        ensure!(is_first, "{key} is given twice; give it once");
    }
    for (index, reply) in replies.iter().enumerate() {
        let key = reply.key();
        let is_first = replies[..index].iter().all(|before| before.key() != key);
        ensure!(is_first, "{key} is given twice; give it once");
    }
    for url in &urls {
        number::set_url(config, &accounts.get(name).await?, url.as_ref()).await?;
    }
    for reply in &replies {
        number::set_reply(config, &accounts.get(name).await?, reply).await?;
    }
    let apply = |rules: &mut SpendingRules| {
        for change in &changes {
            change.clone().apply(rules);
        }
    };
    let rules = accounts
        .set_rules(&Actor::command_line(), name, apply)
        .await?;
    if output.json {
        let mut shown = json!({ "name": name });
        add_rules(&mut shown, &rules);
        print_json(&shown);
    } else {
        println!("Rules of account '{name}':");
        for (key, value) in rules.in_words() {
            println!("  {key:<21}  {value}");
        }
    }
    Ok(())
}

async fn rotate_secret(
    accounts: &Accounts,
    name: &str,
    overlap_hours: u16,
    output: Output,
) -> anyhow::Result<()> {
    let account = accounts.get(name).await?;
    let overlap = SignedDuration::from_hours(i64::from(overlap_hours));
    let secret = accounts
        .rotate_callback_secret(&Actor::command_line(), &account, overlap)
        .await?;
    if output.json {
        print_json(&json!({
            "name": name, "callbackSecret": secret, "overlapHours": overlap_hours,
        }));
        return Ok(());
    }
    println!("Within a minute, callbacks of account '{name}' are signed with {secret}");
    match overlap_hours {
        0 => println!("The former secret is no longer used."),
        hours => println!("They are also signed with the former secret for {hours} hours."),
    }
    Ok(())
}

fn print_created(account: &AccountRecord, secret: &str, output: Output) {
    if output.json {
        let mut shown = as_json(account);
        shown["callbackSecret"] = json!(secret);
        print_json(&shown);
        return;
    }
    println!(
        "Account '{}' was created with ID {} and a balance of {}.",
        account.name, account.id, account.balance
    );
    println!("Its callbacks are signed with {secret}");
}

fn as_json(account: &AccountRecord) -> Value {
    json!({
        "id": account.id.get(),
        "name": account.name,
        "balance": account.balance.to_string(),
        "suspended": account.suspended,
        "created": account.created_at.to_string(),
    })
}

fn as_json_with_rules(account: &AccountRecord) -> Value {
    let mut shown = as_json(account);
    add_rules(&mut shown, &account.rules);
    shown
}

/// Values without a limit are null.
fn add_rules(shown: &mut Value, rules: &SpendingRules) {
    let codes = rules.countries.as_slice();
    let codes: Vec<&str> = codes.iter().map(domain::Country::as_str).collect();
    shown["creditLimit"] = json!(rules.credit_limit.to_string());
    shown["countries"] = json!((!codes.is_empty()).then_some(codes));
    shown["dailyCap"] = json!(rules.daily_cap.map(|cap| cap.to_string()));
    shown["perRecipientHour"] = json!(rules.per_recipient_hour);
    shown["approvedSendersOnly"] = json!(rules.approved_senders_only);
    shown["requestsPerSecond"] = json!(rules.requests_per_second);
    shown["codesPerDay"] = json!(rules.codes_per_day);
    shown["adminsConsentOnly"] = json!(rules.admins_consent_only);
    shown["textsFor"] = json!(rules.texts_for.to_string());
    shown["lowBalance"] = json!(rules.low_balance.map(|low| low.to_string()));
    shown["portedNumbers"] = json!(rules.ported_numbers);
    shown["verifyPrice"] = json!(rules.verify_price.to_string());
}

fn print_table(accounts: &[AccountRecord]) {
    println!(
        "{:>6}  {:<24}  {:>14}  {:<9}  {:<20}  LIMITS",
        "ID", "NAME", "BALANCE", "STATE", "CREATED"
    );
    for account in accounts {
        let state = if account.suspended {
            "suspended"
        } else {
            "active"
        };
        let (id, name, balance) = (account.id, &account.name, account.balance.to_string());
        let created = account.created_at.strftime(TIME).to_string();
        println!(
            "{id:>6}  {name:<24}  {balance:>14}  {state:<9}  {created:<20}  {}",
            limits(&account.rules)
        );
    }
}

/// The rules that differ from the defaults, on one line.
fn limits(rules: &SpendingRules) -> String {
    rules.changes_since(&SpendingRules::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_rules_as_they_are_typed() {
        let mut rules = SpendingRules::default();
        assert_eq!(limits(&rules), "");
        let typed = "credit_limit=5.00 countries=EE,LV daily_cap=0.50 per_recipient_hour=3 approved_senders_only=true requests_per_second=25";
        for change in typed.split(' ') {
            change
                .parse::<RuleChange>()
                .expect(change)
                .apply(&mut rules);
        }
        assert_eq!(limits(&rules), typed);
    }
}
