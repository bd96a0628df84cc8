//! `switchboard token …`

use domain::ports::TokenRecord;
use domain::{AllowList, Clock, Permissions};
use engine::clock::SystemClock;
use engine::identity::accounts::TokenInput;
use engine::{Accounts, Actor};
use serde_json::json;

use super::{accounts, print_json};
use crate::cli::{TokenArgs, TokenCommand};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: TokenCommand) -> anyhow::Result<()> {
    let accounts = accounts(config).await?;
    match command {
        TokenCommand::Create(args) => create(&accounts, args).await,
        TokenCommand::List { account, output } => {
            let account = match account {
                Some(name) => Some(accounts.get(&name).await?.id),
                None => None,
            };
            let list = accounts.list_tokens(account).await?;
            if output.json {
                print_json(&list.iter().map(as_json).collect());
            } else {
                print_table(&list);
            }
            Ok(())
        }
        TokenCommand::Revoke { id } => {
            accounts
                .revoke_token(&Actor::command_line(), None, id)
                .await?;
            println!("Token {id} is revoked.");
            Ok(())
        }
    }
}

async fn create(accounts: &Accounts, args: TokenArgs) -> anyhow::Result<()> {
    let account = accounts.get(&args.account).await?;
    let permissions = if args.permissions.is_empty() {
        Permissions::all()
    } else {
        args.permissions.into_iter().collect()
    };
    let order = TokenInput {
        name: args.name,
        permissions,
        allow: AllowList::new(args.allow_ips),
        expires: args.expires.map(|lifetime| SystemClock.now() + lifetime),
    };
    let (id, token) = accounts
        .create_token(&Actor::command_line(), account.id, order)
        .await?;
    if args.output.json {
        print_json(&json!({ "id": id.get(), "token": token.reveal() }));
    } else {
        println!(
            "Token {id} of account '{}', shown only once:\n{}",
            account.name,
            token.reveal()
        );
    }
    Ok(())
}

fn as_json(token: &TokenRecord) -> serde_json::Value {
    let access = &token.access;
    json!({
        "id": token.id.get(),
        "account": access.account_name,
        "name": access.name,
        "permissions": access.permissions.iter().map(domain::Permission::name).collect::<Vec<_>>(),
        "ips": access.allow.networks(),
        "expires": access.expires.map(|time| time.to_string()),
        "dailyCap": access.grant_cap.map(|cap| cap.daily.to_string()),
        "created": token.created_at.to_string(),
    })
}

fn print_table(tokens: &[TokenRecord]) {
    println!(
        "{:>6}  {:<20}  {:<20}  {:<20}  {:>9}  PERMISSIONS",
        "ID", "ACCOUNT", "NAME", "EXPIRES", "DAILY CAP"
    );
    for token in tokens {
        let access = &token.access;
        let expires = access.expires.map_or_else(
            || "never".to_owned(),
            |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        );
        let cap = access
            .grant_cap
            .map_or_else(|| "-".to_owned(), |cap| cap.daily.to_string());
        let (id, account, name) = (token.id, &access.account_name, &access.name);
        println!(
            "{id:>6}  {account:<20}  {name:<20}  {expires:<20}  {cap:>9}  {}",
            access.permissions.to_names()
        );
    }
}
