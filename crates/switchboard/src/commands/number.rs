//! `switchboard number …`

use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::CallbackUrl;
use domain::ports::{AccountRecord, NumberEntry, OwnedNumber};
use engine::clock::SystemClock;
use engine::{Accounts, Actor, Numbers};
use serde_json::{Value, json};

use super::{print_json, store};
use crate::cli::{AddNumberArgs, EntryArgs, NumberCommand, Output, ReplyChange};
use crate::config::Config;
use crate::outside;

pub(super) async fn run(config: &Config, command: NumberCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let urls = outside::url_guard(config, outside::resolver(config));
    let numbers = Numbers::new(store.clone(), Arc::new(SystemClock), urls);
    match command {
        NumberCommand::Add(args) => {
            let accounts = Accounts::new(store, Arc::new(SystemClock));
            add(&numbers, &accounts, args).await
        }
        NumberCommand::List { output } => list(&numbers, output).await,
        NumberCommand::Remove { entry } => remove(&numbers, &entry).await,
    }
}

/// Sets where messages to numbers of an account are sent.
pub(super) async fn set_url(
    config: &Config,
    account: &AccountRecord,
    url: Option<&CallbackUrl>,
) -> anyhow::Result<()> {
    let urls = outside::url_guard(config, outside::resolver(config));
    let numbers = Numbers::new(store(config).await?, Arc::new(SystemClock), urls);
    let by = Actor::command_line();
    Ok(numbers.set_url(&by, account.id, url).await?)
}

/// Sets the reply of an account to a word such as STOP.
pub(super) async fn set_reply(
    config: &Config,
    account: &AccountRecord,
    reply: &ReplyChange,
) -> anyhow::Result<()> {
    let urls = outside::url_guard(config, outside::resolver(config));
    let numbers = Numbers::new(store(config).await?, Arc::new(SystemClock), urls);
    let ReplyChange {
        request,
        language,
        text,
    } = reply;
    let by = Actor::command_line();
    let set = numbers.set_reply(&by, account.id, *request, *language, text.as_deref());
    Ok(set.await?)
}

async fn add(numbers: &Numbers, accounts: &Accounts, args: AddNumberArgs) -> anyhow::Result<()> {
    let account = accounts.get(&args.account).await?;
    let url = args.url.as_deref().map(CallbackUrl::parse).transpose();
    let entry = NumberEntry {
        number: args.entry.number,
        keyword: args.entry.keyword,
        account: account.id,
        url: url.context("--url is not a URL that callbacks can be sent to")?,
    };
    numbers.add(&Actor::command_line(), &entry).await?;
    if args.output.json {
        print_json(&as_json(&entry, &account.name));
    } else {
        println!(
            "{} belongs to account '{}'.",
            in_words(&entry),
            account.name
        );
    }
    Ok(())
}

async fn list(numbers: &Numbers, output: Output) -> anyhow::Result<()> {
    let listed = numbers.list().await?;
    if output.json {
        let entries = listed.iter();
        print_json(
            &entries
                .map(|it| as_json(&it.entry, &it.account_name))
                .collect(),
        );
        return Ok(());
    }
    println!(
        "{:<17}  {:<16}  {:<24}  URL",
        "NUMBER", "KEYWORD", "ACCOUNT"
    );
    for OwnedNumber {
        entry,
        account_name,
        account_url,
    } in &listed
    {
        let url = entry.url.as_ref().or(account_url.as_ref());
        println!(
            "{:<17}  {:<16}  {account_name:<24}  {}",
            entry.number.to_string(),
            entry.keyword.as_deref().unwrap_or("-"),
            url.map_or("-", CallbackUrl::as_str)
        );
    }
    Ok(())
}

async fn remove(numbers: &Numbers, entry: &EntryArgs) -> anyhow::Result<()> {
    let (number, keyword) = (&entry.number, entry.keyword.as_deref());
    let by = Actor::command_line();
    if !numbers.remove(&by, number, keyword).await? {
        match keyword {
            Some(keyword) => bail!(
                "{number} has no keyword '{keyword}'; `switchboard number list` shows what there is"
            ),
            None => bail!(
                "nobody has {number} without a keyword; `switchboard number list` shows what there is"
            ),
        }
    }
    println!("Removed.");
    Ok(())
}

fn in_words(entry: &NumberEntry) -> String {
    match &entry.keyword {
        Some(keyword) => format!("{} with the keyword '{keyword}'", entry.number),
        None => entry.number.to_string(),
    }
}

fn as_json(entry: &NumberEntry, account: &str) -> Value {
    json!({
        "number": entry.number.to_string(),
        "keyword": entry.keyword,
        "account": account,
        "url": entry.url.as_ref().map(CallbackUrl::as_str),
    })
}
