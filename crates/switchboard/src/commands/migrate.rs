//! `switchboard migrate`

use anyhow::{Context as _, bail};
use serde_json::json;
use store::DatabaseUrl;
use store::transfer::{self, Checked, Moved, TransferError};

use super::progress::RowProgress;
use super::{checked, print_json};
use crate::cli::MigrateArgs;
use crate::config::Config;
use crate::serve::{self, WorkerLock};

pub(super) async fn run(config: &Config, args: MigrateArgs) -> anyhow::Result<()> {
    let from = database(config, args.from.as_deref()).context("--from")?;
    let to = database(config, args.to.as_deref()).context("--to")?;
    if args.undo {
        transfer::undo(&from, &to).await?;
        if args.output.json {
            print_json(&json!({ "from": from.to_string(), "to": to.to_string(), "undone": true }));
        } else {
            println!(
                "{from} is open again, {to} is closed. Changes in {to} since the move stay there."
            );
        }
        return Ok(());
    }
    serve::create_folder(&to)?;
    // Held to the end, so that no service starts on the file while it is moved.
    let (_lock, is_busy) = match source_lock(&from)? {
        WorkerLock::Ours(lock) => (lock, false),
        WorkerLock::Others(_) => (None, true),
    };
    let mut rows = RowProgress::new(!args.output.json);
    let moved = transfer::migrate(&from, &to, is_busy, &mut rows).await;
    rows.finish();
    match print_differences(moved)? {
        Moved::Begun { remaining } => begun(&from, &to, &remaining, args.output.json),
        Moved::Complete(checked) => complete(&from, &to, &checked, args.output.json),
        Moved::Already => already(&from, &to, args.output.json),
    }
    Ok(())
}

fn database(config: &Config, url: Option<&str>) -> anyhow::Result<DatabaseUrl> {
    match url {
        Some(url) => Ok(url.parse()?),
        None => config.database_url(),
    }
}

/// A missing source is not in use, and its folder must not be created.
fn source_lock(from: &DatabaseUrl) -> anyhow::Result<WorkerLock> {
    match from {
        DatabaseUrl::Sqlite(file) if !file.is_file() => Ok(WorkerLock::Ours(None)),
        _ => serve::try_lock(from),
    }
}

fn begun(from: &DatabaseUrl, to: &DatabaseUrl, remaining: &[(&str, u64)], as_json: bool) {
    if as_json {
        let remaining: serde_json::Map<_, _> = remaining
            .iter()
            .map(|(table, rows)| ((*table).to_owned(), json!(rows)))
            .collect();
        print_json(&json!({
            "from": from.to_string(), "to": to.to_string(), "complete": false, "remaining": remaining,
        }));
        return;
    }
    println!(
        "A service is running on {from}. Data that no longer changes was copied to {to}. Still to copy:\n"
    );
    for (table, rows) in remaining {
        println!("  {table:<20} {rows:>12} rows");
    }
    println!(
        "\nThe service may keep running. To complete the move, stop it and run the same command again; until then no service\n\
         starts on {to}. (A killed service counts as running for ten more seconds.)"
    );
}

fn complete(from: &DatabaseUrl, to: &DatabaseUrl, checked: &[Checked], as_json: bool) {
    if as_json {
        print_json(&json!({
            "from": from.to_string(), "to": to.to_string(), "complete": true, "checked": checked::to_json(checked),
        }));
        return;
    }
    print!("{}", checked::text(checked));
    println!(
        "\nEverything is in {to}: set database.url to it and start the service. {from} is closed; nothing in it was\n\
         removed. The same command with --undo opens it again."
    );
}

fn already(from: &DatabaseUrl, to: &DatabaseUrl, as_json: bool) {
    if as_json {
        print_json(&json!({ "from": from.to_string(), "to": to.to_string(), "complete": true }));
    } else {
        println!("{from} was already moved to {to}; there is nothing to do.");
    }
}

/// Prints the differences before the error reports them.
pub(super) fn print_differences<T>(outcome: Result<T, TransferError>) -> anyhow::Result<T> {
    match outcome {
        Err(TransferError::Differs(checked)) => {
            print!("{}", checked::text(&checked));
            let differ = checked.iter().filter(|checked| !checked.is_equal());
            bail!(
                "the copy differs from the source in {} value(s); the copy is not in use",
                differ.count()
            )
        }
        outcome => Ok(outcome?),
    }
}
