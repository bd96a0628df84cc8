//! The commands, one file a subject. Each works beside a running service.

mod account;
mod token;

use std::sync::Arc;

use domain::clock::SystemClock;
use engine::Accounts;

use crate::cli::{Cli, Command, ConfigCommand};
use crate::config::{self, Config};
use crate::serve;

/// Does what the command line asks for.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let config = config::load(&cli.place)?;
    let command = cli
        .command
        .unwrap_or(Command::Serve(crate::cli::ServeArgs::default()));
    if let Command::Config(ConfigCommand::Check) = command {
        print!("{}", toml::to_string(&config)?);
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::run(config, args).await,
            Command::Account(command) => account::run(&config, command).await,
            Command::Token(command) => token::run(&config, command).await,
            Command::Config(ConfigCommand::Check) => {
                unreachable!("answered above, without a runtime")
            }
        }
    })
}

/// The account use cases on the configured database.
async fn accounts(config: &Config) -> anyhow::Result<Accounts> {
    let store = serve::open_store(config, &config.database_url()?).await?;
    Ok(Accounts::new(store, Arc::new(SystemClock)))
}

/// Prints one JSON value on a line of its own.
fn print_json(value: &serde_json::Value) {
    println!("{value}");
}
