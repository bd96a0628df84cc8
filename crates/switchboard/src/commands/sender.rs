//! `switchboard sender …`

use std::collections::HashMap;
use std::sync::Arc;

use domain::AccountId;
use domain::ports::{ListRange, SenderFilter};
use domain::sender::{Category, SenderRecord, SenderState, Step};
use engine::clock::SystemClock;
use engine::{Accounts, Actor, SenderReview};
use serde_json::{Value, json};

use super::{TIME, account_id, print_json, store};
use crate::cli::{Decision, Output, SenderCommand};
use crate::config::Config;

/// How many sender IDs are read per page.
const PAGE_SIZE: u32 = 1000;

/// The names of accounts.
type AccountNames = HashMap<AccountId, String>;

pub(super) async fn run(config: &Config, command: SenderCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let review = SenderReview::new(store.clone(), Arc::new(SystemClock));
    let accounts = Accounts::new(store.clone(), Arc::new(SystemClock));
    let accounts = accounts.list().await?.into_iter();
    let names: AccountNames = accounts.map(|account| (account.id, account.name)).collect();
    match command {
        SenderCommand::List {
            account,
            state,
            output,
        } => {
            let account = account_id(&store, account.as_deref()).await?;
            let filter = SenderFilter {
                account,
                state,
                after: None,
            };
            list(&review, filter, &names, output).await
        }
        SenderCommand::Approve(decision) => decide(&review, Step::Approve, &decision, &names).await,
        SenderCommand::Reject(decision) => decide(&review, Step::Reject, &decision, &names).await,
        SenderCommand::Revoke(decision) => decide(&review, Step::Revoke, &decision, &names).await,
    }
}

async fn list(
    review: &SenderReview,
    filter: SenderFilter,
    names: &AccountNames,
    output: Output,
) -> anyhow::Result<()> {
    let mut senders = Vec::new();
    loop {
        let page = ListRange {
            limit: PAGE_SIZE,
            offset: senders.len() as u64,
        };
        let more = review.list(filter, page).await?;
        let is_last = more.len() < PAGE_SIZE as usize;
        senders.extend(more);
        if is_last {
            break;
        }
    }
    if output.json {
        print_json(&senders.iter().map(|one| as_json(one, names)).collect());
    } else {
        print_table(&senders, names);
    }
    Ok(())
}

async fn decide(
    review: &SenderReview,
    step: Step,
    decision: &Decision,
    names: &AccountNames,
) -> anyhow::Result<()> {
    let (by, reason) = (Actor::command_line(), decision.reason.as_deref());
    let sender = review.decide(&by, decision.id, step, reason).await?;
    if decision.output.json {
        print_json(&as_json(&sender, names));
    } else {
        let (id, name, state) = (sender.id, &sender.name, sender.state.name());
        println!(
            "Sender {id}, '{name}' of account '{}', is {state}.",
            account(&sender, names)
        );
    }
    Ok(())
}

fn account<'a>(sender: &SenderRecord, names: &'a AccountNames) -> &'a str {
    names.get(&sender.account).map_or("?", String::as_str)
}

fn as_json(sender: &SenderRecord, names: &AccountNames) -> Value {
    let url = sender.notification_url.as_ref();
    json!({
        "id": sender.id.get(),
        "account": account(sender, names),
        "name": sender.name.to_string(),
        "type": sender.name.kind().name(),
        "status": sender.state.name(),
        "reason": sender.reason,
        "category": sender.category.map(Category::name),
        "categoryDescription": sender.description,
        "notificationUrl": url.map(domain::CallbackUrl::as_str),
        "created": sender.created_at.to_string(),
    })
}

fn print_table(senders: &[SenderRecord], names: &AccountNames) {
    println!(
        "{:>6}  {:<16}  {:<16}  {:<21}  {:<20}  ABOUT",
        "ID", "ACCOUNT", "NAME", "STATE", "CREATED"
    );
    for sender in senders {
        let created = sender.created_at.strftime(TIME).to_string();
        println!(
            "{:>6}  {:<16}  {:<16}  {:<21}  {created:<20}  {}",
            sender.id,
            account(sender, names),
            sender.name.to_string(),
            sender.state.name(),
            about(sender)
        );
    }
}

/// What the reviewer decides by, or the reason of the decision, on one line.
fn about(sender: &SenderRecord) -> String {
    let category = sender.category.map(Category::name);
    let words = match sender.state {
        SenderState::Rejected | SenderState::Revoked => sender.reason.as_deref(),
        _ => sender.description.as_deref(),
    };
    let words = words.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let parts = category.map(str::to_owned).into_iter().chain(words);
    parts.collect::<Vec<_>>().join(": ")
}
