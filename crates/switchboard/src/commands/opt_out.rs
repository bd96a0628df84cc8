//! `switchboard opt-out …`

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use domain::AccountId;
use domain::opt_out::{OptOut, OptOutKey, Via};
use engine::clock::SystemClock;
use engine::refusals::csv;
use engine::refusals::opt_outs::IMPORT_STEP;
use engine::{Accounts, Actor, OptOuts};
use serde_json::{Value, json};

use super::{TIME, files, print_json, progress, refused, store};
use crate::cli::{OptOutArgs, OptOutCommand, Output};
use crate::config::Config;

/// How many entries are read per page.
const PAGE_SIZE: u32 = 5_000;

pub(super) async fn run(config: &Config, command: OptOutCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let clock = Arc::new(SystemClock);
    let accounts = Accounts::new(store.clone(), clock.clone());
    let opt_outs = OptOuts::new(store.clone(), store, clock, None);
    match command {
        OptOutCommand::Add(args) => {
            let account = accounts.get(&args.account).await?.id;
            add(&opt_outs, account, args).await
        }
        OptOutCommand::Remove(args) => {
            let account = accounts.get(&args.account).await?.id;
            remove(&opt_outs, account, args).await
        }
        OptOutCommand::List { account, output } => {
            let account = accounts.get(&account).await?.id;
            list(&opt_outs, account, output).await
        }
        OptOutCommand::Import {
            file,
            account,
            output,
        } => {
            let account = accounts.get(&account).await?.id;
            import(&opt_outs, account, &file, output).await
        }
    }
}

async fn add(opt_outs: &OptOuts, account: AccountId, args: OptOutArgs) -> anyhow::Result<()> {
    let key = OptOutKey {
        recipient: args.number,
        sender: args.sender,
    };
    // An entry of the command line counts as imported: only accounts themselves use the API and the dashboard.
    let added = opt_outs
        .add(&Actor::command_line(), account, key, Via::Import)
        .await?;
    if args.output.json {
        print_json(&as_json(&added));
    } else {
        println!("{} gets no more messages of {}.", args.number, args.account);
    }
    Ok(())
}

async fn remove(opt_outs: &OptOuts, account: AccountId, args: OptOutArgs) -> anyhow::Result<()> {
    let key = OptOutKey {
        recipient: args.number,
        sender: args.sender,
    };
    let removed = opt_outs
        .remove(&Actor::command_line(), account, &key)
        .await?;
    ensure!(
        removed,
        "{} is not on the list of {} for {}; `opt-out list` shows it",
        args.number,
        args.account,
        shown_sender(&key)
    );
    if args.output.json {
        let sender = key.sender.map(|sender| sender.to_string());
        print_json(&json!({ "number": args.number.to_string(), "sender": sender }));
    } else {
        println!("{} gets messages of {} again.", args.number, args.account);
    }
    Ok(())
}

/// Prints page by page, so that the length of the list does not matter.
async fn list(opt_outs: &OptOuts, account: AccountId, output: Output) -> anyhow::Result<()> {
    let mut text = if output.json {
        "[".to_owned()
    } else {
        format!("{:<16}  {:<12}  {:<20}  VIA\n", "NUMBER", "SENDER", "SINCE")
    };
    let mut after: Option<OptOutKey> = None;
    loop {
        let page = opt_outs.list(account, after.as_ref(), PAGE_SIZE).await?;
        for (index, entry) in page.iter().enumerate() {
            if output.json {
                let is_first = after.is_none() && index == 0;
                text.push_str(if is_first { "" } else { "," });
                text.push_str(&as_json(entry).to_string());
            } else {
                text.push_str(&table_line(entry));
            }
        }
        files::write_text(None, &text)?;
        text.clear();
        let Some(last) = page.last().filter(|_| page.len() >= PAGE_SIZE as usize) else {
            break;
        };
        after = Some(last.key.clone());
    }
    files::write_text(None, if output.json { "]\n" } else { "" })
}

fn table_line(entry: &OptOut) -> String {
    let number = entry.key.recipient.to_string();
    let since = entry.since.strftime(TIME).to_string();
    let (sender, via) = (shown_sender(&entry.key), entry.via.name());
    format!("{number:<16}  {sender:<12}  {since:<20}  {via}\n")
}

async fn import(
    opt_outs: &OptOuts,
    account: AccountId,
    file: &Path,
    output: Output,
) -> anyhow::Result<()> {
    let read = csv::read(files::open(file)?);
    let name = files::name_of(file);
    let keys = read.map_err(|problems| refused(&name, &problems))?;
    let by = Actor::command_line();
    opt_outs.begin_import(&by, account, keys.len()).await?;
    let bar = progress::rows(keys.len() as u64, !output.json);
    let mut added = 0;
    for step in keys.chunks(IMPORT_STEP) {
        added += opt_outs.import(account, step).await?;
        bar.inc(step.len() as u64);
    }
    bar.finish_and_clear();
    if output.json {
        print_json(&json!({ "entries": keys.len(), "added": added }));
    } else {
        let known = keys.len() as u64 - added;
        println!("{added} added, {known} were on the list already.");
    }
    Ok(())
}

fn shown_sender(key: &OptOutKey) -> String {
    let sender = key.sender.as_ref().map(ToString::to_string);
    sender.unwrap_or_else(|| "all senders".to_owned())
}

fn as_json(entry: &OptOut) -> Value {
    json!({
        "number": entry.key.recipient.to_string(),
        "sender": entry.key.sender.as_ref().map(ToString::to_string),
        "since": entry.since.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        "via": entry.via.name(),
    })
}
