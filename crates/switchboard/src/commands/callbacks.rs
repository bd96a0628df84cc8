//! `switchboard callbacks …`

use std::sync::Arc;

use anyhow::ensure;
use domain::delivery::CallbackAttempt;
use domain::ports::{CallbackFilter, CallbackRecord, CallbackState, ListRange};
use engine::clock::SystemClock;
use engine::{Actor, CallbackHistory};
use serde_json::json;

use super::{print_json, store};
use crate::cli::{CallbackSelector, CallbacksCommand};
use crate::config::Config;

/// How many callbacks a replay makes due between two lines of progress.
const PROGRESS_INTERVAL: u64 = 10_000;

pub(super) async fn run(config: &Config, command: CallbacksCommand) -> anyhow::Result<()> {
    let reports = CallbackHistory::new(store(config).await?, Arc::new(SystemClock));
    match command {
        CallbacksCommand::List {
            selector,
            all,
            limit,
            output,
        } => {
            let page = ListRange { limit, offset: 0 };
            let list = reports.list(&filter(selector, all), page).await?;
            if output.json {
                print_json(&list.iter().map(as_json).collect());
            } else {
                print_table(&list);
            }
        }
        CallbacksCommand::Show { id, output } => {
            let attempts = reports.attempts(id).await?;
            if output.json {
                print_json(&attempts.iter().map(attempt_as_json).collect());
            } else if attempts.is_empty() {
                println!(
                    "Callback {id} has not been sent yet, or there is no callback with this ID."
                );
            } else {
                for attempt in &attempts {
                    print_attempt(attempt);
                }
            }
        }
        CallbacksCommand::Replay { selector, all } => {
            let filter = filter(selector, all);
            let is_selective = CallbackFilter {
                with_done: false,
                ..filter.clone()
            } != CallbackFilter::default();
            ensure!(
                is_selective,
                "select callbacks by --id ID, --url PREFIX, --from TIME or --until TIME"
            );
            let mut shown = 0;
            let watch = |count: u64| {
                if count >= shown + PROGRESS_INTERVAL {
                    shown = count;
                    eprintln!("{count} so far");
                }
            };
            let by = Actor::command_line();
            let count = reports.replay_watched(&by, &filter, watch).await?;
            println!("{count} callbacks are sent again.");
        }
    }
    Ok(())
}

fn filter(selector: CallbackSelector, with_done: bool) -> CallbackFilter {
    CallbackFilter {
        account: None,
        id: selector.id,
        url_prefix: selector.url,
        from: selector.from,
        until: selector.until,
        with_done,
    }
}

fn state(record: &CallbackRecord) -> &'static str {
    match record.state {
        CallbackState::Waiting { .. } => "waiting",
        CallbackState::Parked => "parked",
        CallbackState::Done => "received",
    }
}

fn as_json(record: &CallbackRecord) -> serde_json::Value {
    let due = match record.state {
        CallbackState::Waiting { due_at } => Some(due_at.to_string()),
        CallbackState::Parked | CallbackState::Done => None,
    };
    json!({
        "id": record.id.get(),
        "kind": record.kind.name(),
        "account": record.account.get(),
        "url": record.url,
        "payload": record.payload,
        "state": state(record),
        "due": due,
        "tries": record.tries,
        "created": record.created_at.to_string(),
        "last": record.last.as_ref().map(attempt_as_json),
    })
}

fn attempt_as_json(attempt: &CallbackAttempt) -> serde_json::Value {
    json!({
        "at": attempt.at.to_string(),
        "status": attempt.status,
        "elapsedMs": attempt.elapsed_ms,
        "body": String::from_utf8_lossy(&attempt.body),
        "address": attempt.address,
        "reason": attempt.reason,
    })
}

fn print_table(list: &[CallbackRecord]) {
    println!(
        "{:>8}  {:<8}  {:>5}  {:<40}  LAST ATTEMPT",
        "ID", "STATE", "TRIES", "ADDRESS"
    );
    for record in list {
        let reason = record
            .last
            .as_ref()
            .map_or("", |attempt| attempt.reason.as_str());
        println!(
            "{:>8}  {:<8}  {:>5}  {:<40}  {reason}",
            record.id,
            state(record),
            record.tries,
            record.url
        );
    }
}

fn print_attempt(attempt: &CallbackAttempt) {
    let address = attempt.address.as_deref().unwrap_or("-");
    println!(
        "{}  {:>6} ms  {address}  {}",
        attempt.at.strftime("%Y-%m-%d %H:%M:%SZ"),
        attempt.elapsed_ms,
        attempt.reason
    );
}
