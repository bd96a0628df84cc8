//! `switchboard subject …`

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::Arc;

use anyhow::ensure;
use domain::delivery::CallbackAttempt;
use domain::inbound::assembly::assemble;
use domain::message::MessageState;
use domain::opt_out::OptOut;
use domain::ports::{
    CallbackRecord, InboundDetail, ListRange, MessageDetail, PartSet, SenderFilter, Store,
};
use domain::sender::SenderRecord;
use domain::verify::Verification;
use domain::{AccountId, Clock as _, ImageUrl, Msisdn, Outcome, Timestamp};
use engine::clock::SystemClock;
use engine::subject::SubjectCount;
use engine::{Actor, Subjects};
use serde_json::{Value, json};

use super::store;
use crate::cli::{SubjectCommand, SubjectNumber};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: SubjectCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let subjects = Subjects::new(
        store.clone(),
        store.clone(),
        store.clone(),
        Arc::new(SystemClock),
    );
    match command {
        SubjectCommand::Export(subject) => export(&store, &subjects, corrected(&subject)?).await,
        SubjectCommand::Erase { subject, yes } => {
            let number = corrected(&subject)?;
            if yes {
                erase(&subjects, &number).await
            } else {
                preview(&subjects, &number).await
            }
        }
    }
}

/// The number as messages to it are stored.
fn corrected(subject: &SubjectNumber) -> anyhow::Result<Msisdn> {
    match subject.country {
        Some(country) => Ok(numbering::examine(&subject.number, Some(country))?.number),
        None => Ok(Msisdn::parse(&subject.number)?),
    }
}

/// Prints one JSON value, message by message, so that their number does not matter.
async fn export(store: &Arc<dyn Store>, subjects: &Subjects, number: Msisdn) -> anyhow::Result<()> {
    let senders = senders(store, &number).await?;
    let opt_outs = opt_outs(store, &number).await?;
    let verifications = verifications(store, &number).await?;
    let mut export = subjects.export(&Actor::command_line(), number).await?;
    let mut names = HashMap::new();
    let mut stdout = io::stdout().lock();
    write!(
        stdout,
        "{{\"number\":\"{number}\",\"senders\":{senders},\"optOuts\":{opt_outs},\"verifications\":{verifications},\"messages\":["
    )?;
    let mut is_first = true;
    while let Some(details) = export.next().await? {
        let accounts = details.iter().map(|one| one.summary.account).collect();
        learn_names(store, accounts, &mut names).await?;
        for detail in &details {
            let comma = if is_first { "" } else { "," };
            write!(stdout, "{comma}\n{}", as_json(detail, &names))?;
            is_first = false;
        }
    }
    write!(stdout, "],\"inbox\":[")?;
    is_first = true;
    while let Some(details) = export.next_inbox().await? {
        let accounts = details.iter().filter_map(|one| one.message.account);
        learn_names(store, accounts.collect(), &mut names).await?;
        for detail in &details {
            let comma = if is_first { "" } else { "," };
            write!(stdout, "{comma}\n{}", inbound_as_json(detail, &names))?;
            is_first = false;
        }
    }
    let waiting = export.waiting_texts().await?.into_iter();
    let waiting: Value = waiting.map(waiting_as_json).collect();
    writeln!(stdout, "],\"incompleteTexts\":{waiting}}}")?;
    Ok(())
}

/// The opt-out lists that have this number as a recipient.
async fn opt_outs(store: &Arc<dyn Store>, number: &Msisdn) -> anyhow::Result<Value> {
    const MOST: u32 = 10_000;
    let found = store.list_opt_outs_of(number, MOST).await?;
    let accounts: Vec<AccountId> = found.iter().map(|(account, _)| *account).collect();
    let names: HashMap<_, _> = store
        .list_account_names(&accounts)
        .await?
        .into_iter()
        .collect();
    let entry = |(account, entry): &(AccountId, OptOut)| {
        json!({
            "account": names.get(account),
            "sender": entry.key.sender.as_ref().map(ToString::to_string),
            "since": entry.since.to_string(),
            "via": entry.via.name(),
        })
    };
    Ok(found.iter().map(entry).collect())
}

/// The one-time codes that were sent to this number, without the codes.
async fn verifications(store: &Arc<dyn Store>, number: &Msisdn) -> anyhow::Result<Value> {
    const MOST: u32 = 10_000;
    let found = store.list_verifications_of(number, MOST).await?;
    let accounts: Vec<AccountId> = found.iter().map(|one| one.account).collect();
    let names: HashMap<_, _> = store
        .list_account_names(&accounts)
        .await?
        .into_iter()
        .collect();
    let now = SystemClock.now();
    let entry = |one: &Verification| {
        json!({
            "id": one.id.get(),
            "account": names.get(&one.account),
            "state": one.state_at(now).name(),
            "created": one.created_at.to_string(),
            "expires": one.expires_at.to_string(),
        })
    };
    Ok(found.iter().map(entry).collect())
}

/// The sender IDs with this number.
async fn senders(store: &Arc<dyn Store>, number: &Msisdn) -> anyhow::Result<Value> {
    const PAGE: ListRange = ListRange {
        limit: 1_000,
        offset: 0,
    };
    let mut found = Vec::new();
    let mut filter = SenderFilter::default();
    loop {
        let page = store.list_senders(filter, PAGE).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.id);
        let is_meant = |sender: &SenderRecord| {
            let name = sender.name.to_string();
            name.trim_start_matches('+') == number.digits()
        };
        found.extend(page.into_iter().filter(is_meant));
    }
    let accounts: Vec<AccountId> = found.iter().map(|sender| sender.account).collect();
    let names = store.list_account_names(&accounts).await?;
    let names: HashMap<AccountId, String> = names.into_iter().collect();
    let senders = found.iter().map(|sender| {
        json!({
            "id": sender.id.get(),
            "account": names.get(&sender.account),
            "name": sender.name.to_string(),
            "state": sender.state.name(),
            "created": sender.created_at.to_string(),
        })
    });
    Ok(senders.collect())
}

async fn learn_names(
    store: &Arc<dyn Store>,
    mut unknown: Vec<AccountId>,
    names: &mut HashMap<AccountId, String>,
) -> anyhow::Result<()> {
    unknown.retain(|id| !names.contains_key(id));
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        names.extend(store.list_account_names(&unknown).await?);
    }
    Ok(())
}

fn as_json(detail: &MessageDetail, names: &HashMap<AccountId, String>) -> Value {
    let summary = &detail.summary;
    let time = |at: Timestamp| at.to_string();
    let (ended, outcome) = match summary.state {
        MessageState::Ended { outcome, at } => (Some(at), Some(outcome)),
        MessageState::Cancelled { at } => (Some(at), None),
        _ => (None, None),
    };
    let result = detail.result.as_deref();
    let parts = detail.parts.iter().map(|part| {
        json!({
            "part": part.part,
            "carrier": part.carrier,
            "reference": part.reference,
            "taken": time(part.taken_at),
        })
    });
    let callbacks = detail.callbacks.iter().map(callback_as_json);
    let interactive = detail.interactive.as_ref();
    let button = interactive.and_then(|interactive| interactive.action.as_ref());
    let image = interactive.and_then(|interactive| interactive.image.as_ref());
    json!({
        "id": summary.id.to_string(),
        "account": names.get(&summary.account),
        "channel": summary.channel.name(),
        "from": summary.from,
        "to": summary.to.map(|to| to.to_string()),
        "text": summary.text,
        "imageUrl": image.map(ImageUrl::as_str),
        "buttonTitle": button.map(|button| button.title.as_str()),
        "buttonUrl": button.map(|button| button.url.as_str()),
        "accepted": time(summary.accepted_at),
        "scheduled": detail.scheduled_at.map(time),
        "ended": ended.map(time),
        "seen": detail.seen_at.map(time),
        "state": summary.state.name(),
        "status": outcome.map(Outcome::status),
        "error": outcome.map(|outcome| outcome.code().number()),
        "network": summary.network.map(|network| network.to_string()),
        "callbackUrl": detail.dlr_url,
        "result": result.map(|result| serde_json::from_str(result).unwrap_or(json!(result))),
        "parts": parts.collect::<Vec<_>>(),
        "callbacks": callbacks.collect::<Vec<_>>(),
    })
}

fn inbound_as_json(detail: &InboundDetail, names: &HashMap<AccountId, String>) -> Value {
    let message = &detail.message;
    let callbacks = detail.callbacks.iter().map(callback_as_json);
    json!({
        "id": message.id.to_string(),
        "account": message.account.and_then(|account| names.get(&account)),
        "carrier": message.carrier,
        "from": message.from,
        "to": message.to.to_string(),
        "text": message.text,
        "received": message.received_at.to_string(),
        "parts": message.parts,
        "coding": message.coding.number(),
        "udh": message.udh.as_ref().map(ToString::to_string),
        "network": message.network.map(|network| network.to_string()),
        "keyword": message.keyword,
        "inReplyTo": message.in_reply_to.map(|id| id.to_string()),
        "incomplete": message.is_incomplete,
        "price": message.price.to_string(),
        "callbacks": callbacks.collect::<Vec<_>>(),
    })
}

/// A text that waits for missing parts.
fn waiting_as_json(set: PartSet) -> Value {
    let text = assemble(set.key.total, set.parts).text;
    json!({
        "carrier": set.key.carrier,
        "from": set.key.from,
        "to": set.key.to.to_string(),
        "text": text,
        "received": set.received_at.to_string(),
        "parts": set.key.total,
    })
}

fn callback_as_json((callback, attempts): &(CallbackRecord, Vec<CallbackAttempt>)) -> Value {
    let attempts = attempts.iter().map(|attempt| {
        json!({
            "at": attempt.at.to_string(),
            "status": attempt.status,
            "answer": String::from_utf8_lossy(&attempt.body),
            "reason": attempt.reason,
        })
    });
    json!({
        "id": callback.id.to_string(),
        "url": callback.url,
        "payload": callback.payload,
        "created": callback.created_at.to_string(),
        "attempts": attempts.collect::<Vec<_>>(),
    })
}

async fn preview(subjects: &Subjects, number: &Msisdn) -> anyhow::Result<()> {
    let found = subjects.count(number).await?;
    println!(
        "{} messages and lookups would lose this number, their texts and their results. Prices and counts stay.",
        found.over
    );
    if found.in_progress > 0 {
        println!("{}", waiting(&found));
    }
    println!("Nothing was changed. Give --yes to erase; it cannot be undone.");
    Ok(())
}

async fn erase(subjects: &Subjects, number: &Msisdn) -> anyhow::Result<()> {
    let erased = subjects.erase(&Actor::command_line(), number).await?;
    println!(
        "The number was erased from {} messages and lookups.",
        erased.over
    );
    ensure!(erased.in_progress == 0, "{}", waiting(&erased));
    Ok(())
}

fn waiting(found: &SubjectCount) -> String {
    format!(
        "{} messages are in progress: they have not ended, or their callback waits. Cancel them or wait, then run the command again",
        found.in_progress
    )
}
