//! `switchboard audit`

use std::net::IpAddr;
use std::sync::Arc;

use domain::ports::{AuditEntry, AuditFilter, Cursor};
use engine::Audit;
use engine::clock::SystemClock;
use serde_json::{Value, json};

use super::{TIME, account_id, print_json, store};
use crate::cli::AuditArgs;
use crate::config::Config;

/// How many entries are read per page.
const PAGE_SIZE: u32 = 1000;

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
        "detail": change.detail,
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
        let words = [change.subject.as_str(), change.detail.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
        println!(
            "{at:<20}  {:<24}  {from:<15}  {:<24}  {}",
            change.who,
            change.action,
            words.join(": ")
        );
    }
}
