//! `switchboard migrate`

use anyhow::{Context as _, bail};
use serde_json::json;
use store::DatabaseUrl;
use store::transfer::{self, Checked, Moved, TransferError};

use super::progress::Rows;
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
                "{from} is open again, {to} is closed. What happened in {to} since the move stays there."
            );
        }
        return Ok(());
    }
    serve::create_folder(&to)?;
    // Held to the end: no service starts on the file while it is moved.
    let (_lock, is_busy) = match source_lock(&from)? {
        WorkerLock::Ours(lock) => (lock, false),
        WorkerLock::Others(_) => (None, true),
    };
    let mut rows = Rows::new(!args.output.json);
    let moved = transfer::migrate(&from, &to, is_busy, &mut rows).await;
    rows.finish();
    match shown(moved)? {
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

/// A source that is not there has nobody who works on it; its folder is left alone.
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
        "A service works on {from}. What does not change any more is in {to} now; there remain:\n"
    );
    for (table, rows) in remaining {
        println!("  {table:<20} {rows:>12} rows");
    }
    println!(
        "\nThe service may go on. To complete the move, stop it and run the same command again; until then no service\n\
         starts on {to}. (A service that was killed counts for ten seconds more.)"
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
        println!("{from} was moved to {to} before; there is nothing to do.");
    }
}

/// Shows what differs before the error says so.
pub(super) fn shown<T>(outcome: Result<T, TransferError>) -> anyhow::Result<T> {
    match outcome {
        Err(TransferError::Differs(checked)) => {
            print!("{}", checked::text(&checked));
            let differ = checked.iter().filter(|checked| !checked.is_equal());
            bail!(
                "the copy differs from the source in {} place(s); nothing was put into force",
                differ.count()
            )
        }
        outcome => Ok(outcome?),
    }
}
