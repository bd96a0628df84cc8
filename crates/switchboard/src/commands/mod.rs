//! The commands, one file a subject. Each works beside a running service.

mod account;
mod callbacks;
mod listen;
mod simulator;
mod token;

use std::sync::Arc;
use std::time::Duration;

use domain::clock::SystemClock;
use domain::ports::Store;
use engine::Accounts;

use crate::cli::{Cli, Command, ConfigCommand};
use crate::config::{self, Config};
use crate::serve;

/// How long the process waits for work that cannot be stopped, once everything is stored.
const STRAGGLERS_TIME: Duration = Duration::from_secs(2);

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
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::run(config, args).await,
            Command::Account(command) => account::run(&config, command).await,
            Command::Token(command) => token::run(&config, command).await,
            Command::Simulator(command) => simulator::run(&config, command).await,
            Command::Callbacks(command) => callbacks::run(&config, command).await,
            Command::Listen { port } => listen::run(port).await,
            Command::Config(ConfigCommand::Check) => {
                unreachable!("answered above, without a runtime")
            }
        }
    });
    // A name server that hangs must not keep the process from ending.
    runtime.shutdown_timeout(STRAGGLERS_TIME);
    outcome
}

/// The configured database.
async fn store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    serve::open_store(config, &config.database_url()?).await
}

/// The account use cases on the configured database.
async fn accounts(config: &Config) -> anyhow::Result<Accounts> {
    Ok(Accounts::new(store(config).await?, Arc::new(SystemClock)))
}

/// Prints one JSON value on a line of its own.
fn print_json(value: &serde_json::Value) {
    println!("{value}");
}
