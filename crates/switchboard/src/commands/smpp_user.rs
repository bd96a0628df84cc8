//! `switchboard smpp-user …`

use std::sync::Arc;

use domain::AllowList;
use domain::access::{AccessLimits, AllowedSenders};
use domain::billing::Countries;
use domain::ports::Store;
use domain::smpp_user::{
    BindKind, BindKinds, ReceiptFormat, SmppLimits, SmppUser, SmppUserOptions,
};
use engine::Actor;
use engine::clock::SystemClock;
use engine::identity::hasher::Hasher;
use engine::identity::smpp_users::{SmppUserChange, SmppUserInput, SmppUserRegistry};
use serde_json::json;

use super::{account_id, print_json, store};
use crate::cli::{Entry, SmppUserArgs, SmppUserCommand, SmppUserSetArgs};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: SmppUserCommand) -> anyhow::Result<()> {
    let store = store(config).await?;
    let (clock, hasher) = (Arc::new(SystemClock), Arc::new(Hasher::default()));
    let users = SmppUserRegistry::new(store.clone(), clock, hasher);
    match command {
        SmppUserCommand::Create(args) => create(&store, &users, *args).await,
        SmppUserCommand::List { account, output } => {
            let account = account_id(&store, account.as_deref()).await?;
            let list = users.list(account).await?;
            let binds = users.count_binds().await?;
            let bound = |user: &SmppUser| binds.get(&user.id).copied().unwrap_or(0);
            if output.json {
                let users = list.iter().map(|user| as_json(user, bound(user)));
                print_json(&users.collect());
            } else {
                print_table(&list, bound);
            }
            Ok(())
        }
        SmppUserCommand::Set(args) => change(&users, *args).await,
        SmppUserCommand::Revoke { system_id } => {
            users.revoke(&Actor::command_line(), &system_id).await?;
            println!("SMPP user {system_id} is revoked.");
            Ok(())
        }
    }
}

async fn create(
    store: &Arc<dyn Store>,
    users: &SmppUserRegistry,
    args: SmppUserArgs,
) -> anyhow::Result<()> {
    let accounts = engine::Accounts::new(store.clone(), Arc::new(SystemClock));
    let account = accounts.get(&args.account).await?;
    let input = SmppUserInput {
        system_id: args.system_id,
        long_password: args.long_password,
        options: SmppUserOptions {
            allow: AllowList::new(args.allow_ips),
            access_limits: AccessLimits {
                senders: AllowedSenders::new(args.allow_senders),
                countries: args.allow_countries.into_iter().collect::<Countries>(),
            },
            limits: SmppLimits {
                max_binds: limit(args.max_binds),
                max_per_second: limit(args.max_per_second),
                binds: all_if_none(args.allow_binds),
            },
            receipts: ReceiptFormat {
                date: args.receipt_date,
                id: args.receipt_id,
                error: args.receipt_error,
            },
        },
    };
    let (system_id, password) = users
        .create(&Actor::command_line(), account.id, input)
        .await?;
    if args.output.json {
        print_json(&json!({ "systemId": system_id.as_str(), "password": password.reveal() }));
    } else {
        println!(
            "SMPP user of account '{}'; the password is shown only once:\nsystem_id: {system_id}\npassword:  {}",
            account.name,
            password.reveal()
        );
    }
    Ok(())
}

async fn change(users: &SmppUserRegistry, args: SmppUserSetArgs) -> anyhow::Result<()> {
    let allow = given("--allow-ip", args.allow_ips)?;
    let senders = given("--allow-sender", args.allow_senders)?;
    let countries = given("--allow-country", args.allow_countries)?;
    let change = SmppUserChange {
        max_binds: args.max_binds,
        max_per_second: args.max_per_second,
        binds: given("--allow-bind", args.allow_binds)?.map(all_if_none),
        allow: allow.map(AllowList::new),
        senders: senders.map(AllowedSenders::new),
        countries: countries.map(|countries| countries.into_iter().collect()),
        receipt_date: args.receipt_date,
        receipt_id: args.receipt_id,
        receipt_error: args.receipt_error,
    };
    anyhow::ensure!(
        change != SmppUserChange::default(),
        "give the options to change; `switchboard smpp-user set --help` lists them"
    );
    let by = Actor::command_line();
    users.change(&by, &args.system_id, change).await?;
    println!("SMPP user {} is changed.", args.system_id);
    Ok(())
}

/// The new entries of a list; `None` if the option was not given.
fn given<T>(option: &str, entries: Vec<Entry<T>>) -> anyhow::Result<Option<Vec<T>>> {
    if entries.is_empty() {
        return Ok(None);
    }
    let count = entries.len();
    let entries = entries.into_iter().filter_map(|entry| match entry {
        Entry::Any => None,
        Entry::One(one) => Some(one),
    });
    let entries: Vec<T> = entries.collect();
    anyhow::ensure!(
        entries.len() == count || count == 1,
        "{option} any means no limit; give it alone"
    );
    Ok(Some(entries))
}

fn all_if_none(kinds: Vec<BindKind>) -> BindKinds {
    if kinds.is_empty() {
        BindKinds::all()
    } else {
        kinds.into_iter().collect()
    }
}

/// 0 means no limit.
fn limit(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number > 0)
}

fn as_json(user: &SmppUser, bound: u32) -> serde_json::Value {
    let (access, limits, receipts) = (&user.access, &user.limits, user.receipts);
    let senders = access.limits.senders.as_slice().iter();
    let countries = access.limits.countries.as_slice().iter();
    json!({
        "systemId": user.system_id.as_str(),
        "account": access.account_name,
        "bound": bound,
        "maxBinds": limits.max_binds.unwrap_or(0),
        "maxPerSecond": limits.max_per_second.unwrap_or(0),
        "binds": limits.binds.iter().map(BindKind::name).collect::<Vec<_>>(),
        "ips": access.allow.networks(),
        "senders": senders.map(ToString::to_string).collect::<Vec<_>>(),
        "countries": countries.map(domain::Country::as_str).collect::<Vec<_>>(),
        "receipts": {
            "date": receipts.date.name(),
            "id": receipts.id.name(),
            "error": receipts.error.name(),
        },
        "created": user.created_at.to_string(),
    })
}

fn print_table(users: &[SmppUser], bound: impl Fn(&SmppUser) -> u32) {
    let number = |limit: Option<u32>| limit.map_or_else(|| "-".to_owned(), |n| n.to_string());
    println!(
        "{:<15}  {:<20}  {:>5}  {:>5}  {:>6}  {:<20}  FROM",
        "SYSTEM ID", "ACCOUNT", "BOUND", "BINDS", "PER S", "CREATED"
    );
    for user in users {
        let (id, account) = (user.system_id.as_str(), &user.access.account_name);
        let (binds, rate) = (
            number(user.limits.max_binds),
            number(user.limits.max_per_second),
        );
        let created = user.created_at.strftime(super::TIME).to_string();
        let networks = user.access.allow.to_string();
        let from = match networks.as_str() {
            "" => "anywhere",
            networks => networks,
        };
        let bound = bound(user);
        println!(
            "{id:<15}  {account:<20}  {bound:>5}  {binds:>5}  {rate:>6}  {created:<20}  {from}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_clears_a_list() {
        let list = |entries| given("--allow-ip", entries).ok();
        assert_eq!(list(Vec::<Entry<u8>>::new()), Some(None));
        assert_eq!(list(vec![Entry::Any]), Some(Some(vec![])));
        let two = vec![Entry::One(1), Entry::One(2)];
        assert_eq!(list(two), Some(Some(vec![1, 2])));
        assert_eq!(list(vec![Entry::One(1), Entry::Any]), None);
    }
}
