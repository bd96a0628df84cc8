//! `switchboard audit`

use std::net::IpAddr;
use std::sync::Arc;

use domain::ports::{AuditEntry, AuditFilter, Cursor};
use engine::Audit;
use engine::audit::{TextPart, split_times};
use engine::clock::SystemClock;
use serde_json::{Value, json};

use super::{TIME, account_id, print_json, store};
use crate::cli::AuditArgs;
use crate::config::Config;

/// How many entries are read per page.
const PAGE_SIZE: u32 = 1000;
const RFC_3339: &str = "%Y-%m-%dT%H:%M:%SZ";

pub(super) async fn run(config: &Config, args: AuditArgs) -> anyhow::Result<()> {
    let store = store(config).await?;
    let filter = AuditFilter {
        account: account_id(&store, args.account.as_deref()).await?,
        who: args.who.map(|who| who.to_lowercase()),
        action: args.action,
    };
    let audit = Audit::new(store, Arc::new(SystemClock));
    let entries = read(&audit, &filter, args.limit as usize).await?;
    if args.output.json {
        print_json(&entries.iter().map(as_json).collect());
    } else {
        print_table(&entries);
    }
    Ok(())
}

async fn read(
    audit: &Audit,
    filter: &AuditFilter,
    limit: usize,
) -> anyhow::Result<Vec<AuditEntry>> {
    let mut entries = Vec::new();
    let mut before = None;
    while entries.len() < limit {
        let cursor = Cursor {
            before,
            limit: PAGE_SIZE,
        };
        let page = audit.search(filter, cursor).await?;
        entries.extend(page.rows);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    entries.truncate(limit);
    Ok(entries)
}

/// A text with its times in another form, without fractions of a second.
fn with_times(text: &str, format: &str) -> String {
    let parts = split_times(text).into_iter();
    let shown = parts.map(|part| match part {
        TextPart::Text(text) => text.to_owned(),
        TextPart::Time(time) => time.strftime(format).to_string(),
    });
    shown.collect()
}

fn as_json(entry: &AuditEntry) -> Value {
    let change = &entry.change;
    json!({
        "id": entry.id.get(),
        "at": change.at.to_string(),
        "who": change.who,
        "address": change.address.map(|address| address.to_string()),
        "account": change.account.map(domain::AccountId::get),
        "action": change.action,
        "subject": change.subject,
        "detail": with_times(&change.detail, RFC_3339),
    })
}

fn print_table(entries: &[AuditEntry]) {
    println!(
        "{:<20}  {:<24}  {:<15}  {:<24}  WHAT",
        "AT", "WHO", "FROM", "ACTION"
    );
    for entry in entries {
        let change = &entry.change;
        let at = change.at.strftime(TIME).to_string();
        let from = change
            .address
            .map_or_else(|| "-".to_owned(), |address: IpAddr| address.to_string());
        let detail = with_times(&change.detail, TIME);
        let words = [change.subject.as_str(), detail.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
        println!(
            "{at:<20}  {:<24}  {from:<15}  {:<24}  {}",
            change.who,
            change.action,
            words.join(": ")
        );
    }
}
