//! `switchboard account …`

use domain::ports::AccountRecord;
use serde_json::json;

use super::{accounts, print_json};
use crate::cli::AccountCommand;
use crate::config::Config;

pub(super) async fn run(config: &Config, command: AccountCommand) -> anyhow::Result<()> {
    let accounts = accounts(config).await?;
    match command {
        AccountCommand::Create {
            name,
            balance,
            output,
        } => {
            let account = accounts.create(&name, balance).await?;
            if output.json {
                let mut shown = as_json(&account);
                shown["callbackSecret"] = json!(account.callback_secret);
                print_json(&shown);
            } else {
                println!(
                    "Account '{}' was created with ID {} and a balance of {}.",
                    account.name, account.id, account.balance
                );
                println!("Its callbacks are signed with {}", account.callback_secret);
            }
        }
        AccountCommand::List { output } => {
            let list = accounts.list().await?;
            if output.json {
                print_json(&list.iter().map(as_json).collect());
            } else {
                print_table(&list);
            }
        }
        AccountCommand::Suspend { name } => {
            accounts.set_suspended(&name, true).await?;
            println!("Account '{name}' is suspended; its tokens are refused.");
        }
        AccountCommand::Resume { name } => {
            accounts.set_suspended(&name, false).await?;
            println!("Account '{name}' goes on.");
        }
    }
    Ok(())
}

fn as_json(account: &AccountRecord) -> serde_json::Value {
    json!({
        "id": account.id.get(),
        "name": account.name,
        "balance": account.balance.to_string(),
        "suspended": account.suspended,
        "created": account.created_at.to_string(),
    })
}

fn print_table(accounts: &[AccountRecord]) {
    println!(
        "{:>6}  {:<24}  {:>14}  {:<9}  CREATED",
        "ID", "NAME", "BALANCE", "STATE"
    );
    for account in accounts {
        let state = if account.suspended {
            "suspended"
        } else {
            "active"
        };
        let (id, name, balance) = (account.id, &account.name, account.balance.to_string());
        println!(
            "{id:>6}  {name:<24}  {balance:>14}  {state:<9}  {}",
            account.created_at.strftime("%Y-%m-%d %H:%M:%SZ")
        );
    }
}
