//! The commands, one file each. All of them work while a service runs.

mod account;
mod audit;
mod backup;
mod block;
mod callbacks;
mod carrier;
mod checked;
mod connect;
mod export;
mod files;
mod generate;
mod health;
mod history;
mod invite;
mod key;
mod listen;
mod migrate;
mod node;
mod number;
mod numbers;
mod opt_out;
mod progress;
mod rates;
mod reference;
mod sender;
mod simulator;
mod smpp_user;
mod smsc;
mod subject;
mod token;
mod verify;

use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::AccountId;
use domain::ports::Store;
use engine::clock::SystemClock;
use engine::{Accounts, Catalogues};

use crate::cli::{Cli, Command, ConfigCommand, NumbersCommand};
use crate::config::{self, Config};
use crate::serve;

/// How long the process waits for background work that cannot be stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The format of times in tables.
const TIME: &str = "%Y-%m-%d %H:%M:%SZ";

/// Runs the given command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    if let Some(Command::Generate { folder }) = &cli.command {
        return generate::run(folder);
    }
    let config = config::load(&cli.paths)?;
    let command = cli
        .command
        .unwrap_or(Command::Serve(crate::cli::ServeArgs::default()));
    if let Command::Config(ConfigCommand::Check { connect }) = command {
        print!("{}", toml::to_string(&config)?);
        if !connect {
            return Ok(());
        }
    }
    if let Command::Numbers(NumbersCommand::Correct(args)) = command {
        return numbers::correct(&args);
    }
    if let Command::Health { listen } = command {
        return health::run(&config, listen);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // Boxed: `block_on` would compile all commands once for each kind of runtime.
    let work: Pin<Box<dyn Future<Output = anyhow::Result<()>>>> = Box::pin(async {
        match command {
            Command::Serve(args) => serve::run(config, &cli.paths, args).await,
            Command::Account(command) => account::run(&config, command).await,
            Command::Token(command) => token::run(&config, command).await,
            Command::SmppUser(command) => smpp_user::run(&config, command).await,
            Command::Invite(command) => invite::run(&config, command).await,
            Command::Sender(command) => sender::run(&config, command).await,
            Command::Number(command) => number::run(&config, command).await,
            Command::OptOut(command) => opt_out::run(&config, command).await,
            Command::Block(command) => block::run(&config, command).await,
            Command::Verify(command) => verify::run(&config, command).await,
            Command::Rates(command) => rates::run(&config, command).await,
            Command::Reference(command) => reference::run(&config, command).await,
            Command::Numbers(NumbersCommand::Lookup(args)) => numbers::lookup(&config, args).await,
            Command::Simulator(command) => simulator::run(&config, command).await,
            Command::Callbacks(command) => callbacks::run(&config, command).await,
            Command::Carrier(command) => carrier::run(&config, command).await,
            Command::Route(command) => carrier::run_route(&config, command).await,
            Command::Node(command) => node::run(&config, command).await,
            Command::Smsc(args) => smsc::run(&config, args).await,
            Command::Audit(args) => audit::run(&config, args).await,
            Command::Listen { port } => listen::run(port).await,
            Command::Export(command) => export::run(&config, command).await,
            Command::Subject(command) => subject::run(&config, command).await,
            Command::Migrate(args) => migrate::run(&config, args).await,
            Command::Backup(args) => backup::run(&config, args).await,
            Command::Restore(args) => backup::restore(&config, args).await,
            Command::Key(command) => key::run(&config, command).await,
            Command::Config(ConfigCommand::Check { .. }) => connect::run(&config).await,
            Command::Numbers(NumbersCommand::Correct(_))
            | Command::Health { .. }
            | Command::Generate { .. } => {
                unreachable!("answered above, without a runtime")
            }
        }
    });
    let outcome = runtime.block_on(work);
    // A hanging name server must not keep the process from ending.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}

async fn store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    serve::open_store(config, &config.database_url()?).await
}

async fn accounts(config: &Config) -> anyhow::Result<Accounts> {
    Ok(Accounts::new(store(config).await?, Arc::new(SystemClock)))
}

async fn catalogues(store: Arc<dyn Store>) -> anyhow::Result<Catalogues> {
    Ok(Catalogues::load(store, Arc::new(SystemClock)).await?)
}

/// The ID of the named account; `None` without a name.
async fn account_id(
    store: &Arc<dyn Store>,
    name: Option<&str>,
) -> anyhow::Result<Option<AccountId>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let accounts = Accounts::new(store.clone(), Arc::new(SystemClock));
    Ok(Some(accounts.get(name).await?.id))
}

/// The error of a refused import, with each problem on its own line.
fn refused(what: &str, problems: &[impl Display]) -> anyhow::Error {
    let mut text = format!("{what} was not taken, nothing was changed:");
    for problem in problems {
        text.push_str("\n  ");
        text.push_str(&problem.to_string());
    }
    anyhow::Error::msg(text)
}

/// Prints a JSON value on one line.
fn print_json(value: &serde_json::Value) {
    println!("{value}");
}
