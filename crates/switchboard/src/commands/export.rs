//! `switchboard export …`

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use domain::ports::{ExportFilter, Store};
use domain::{Country, MessageId, Timestamp};
use engine::reading::export::{ExportChunk, ExportFormat, Exports, MessageExport};
use engine::reading::margin::{MarginReport, MarginSums};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::progress::TimeProgress;
use super::{account_id, catalogues, print_json, store};
use crate::cli::{ExportCommand, ExportMargin, ExportMessages, Period, ReportFormat, RowFormat};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: ExportCommand) -> anyhow::Result<()> {
    match command {
        ExportCommand::Messages(args) => messages(config, args).await,
        ExportCommand::Margin(args) => margin(config, args).await,
    }
}

async fn messages(config: &Config, args: ExportMessages) -> anyhow::Result<()> {
    let format = match args.format {
        RowFormat::Csv => ExportFormat::Csv,
        RowFormat::Jsonl => ExportFormat::JsonLines,
    };
    let store = store(config).await?;
    let filter = filter(&store, &args.period).await?;
    let mut export = begin(config, store, format, filter, args.after).await?;
    let mut output = Output {
        // On a terminal, the rows themselves show the progress.
        progress: TimeProgress::new(filter.since, filter.until, !io::stdout().is_terminal()),
        after: args.after,
    };
    if args.after.is_none() {
        write(&export.header())?;
    }
    let copied = tokio::select! {
        copied = copy(&mut export, &mut output) => copied,
        stopped = interrupted() => Err(stopped),
    };
    output.progress.finish();
    match copied {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        Err(error) => {
            eprintln!("{}", output.how_to_continue());
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

async fn begin(
    config: &Config,
    store: Arc<dyn Store>,
    format: ExportFormat,
    filter: ExportFilter,
    after: Option<MessageId>,
) -> anyhow::Result<MessageExport> {
    let catalogues = Arc::new(catalogues(store.clone()).await?);
    let currency = &config.billing.currency;
    let exports = Exports::new(store.clone(), store, catalogues);
    Ok(exports.begin(filter, format, currency, after))
}

async fn filter(store: &Arc<dyn Store>, period: &Period) -> anyhow::Result<ExportFilter> {
    let (since, until) = (period.from.start(), period.to.end());
    ensure!(since < until, "--from is after --to; exchange them");
    Ok(ExportFilter {
        account: account_id(store, period.account.as_deref()).await?,
        since,
        until,
    })
}

async fn copy(export: &mut MessageExport, output: &mut Output) -> anyhow::Result<()> {
    while let Some(chunk) = export.next().await? {
        write(&chunk.text)?;
        output.written(&chunk);
    }
    Ok(())
}

/// Returns when somebody stops the command.
async fn interrupted() -> anyhow::Error {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
    anyhow::anyhow!("the export was interrupted")
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// What was written to standard output.
struct Output {
    progress: TimeProgress,
    /// The export has everything up to this message.
    after: Option<MessageId>,
}

impl Output {
    fn written(&mut self, chunk: &ExportChunk) {
        self.after = Some(chunk.after);
        self.progress.advance(chunk.until, chunk.messages);
    }

    fn how_to_continue(&self) -> String {
        match self.after {
            Some(id) => format!(
                "The rows so far are complete. To get the rest, run the same command with --after {id} and append its output."
            ),
            None => "Nothing was exported yet. Run the same command again.".to_owned(),
        }
    }
}

/// A closed pipe is no failure: `head` has read enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn margin(config: &Config, args: ExportMargin) -> anyhow::Result<()> {
    let store = store(config).await?;
    let filter = filter(&store, &args.period).await?;
    let export = begin(config, store, ExportFormat::Csv, filter, None).await?;
    let mut progress = TimeProgress::new(filter.since, filter.until, true);
    let watch = |until: Timestamp| progress.advance(Some(until), 0);
    let no_deadline: Option<Instant> = None;
    let report = MarginReport::read(export, no_deadline, watch).await;
    progress.finish();
    let report = report.context("the messages could not be added up")?;
    let currency = &config.billing.currency;
    match args.format {
        ReportFormat::Csv => print!("{}", report.to_csv(currency)),
        ReportFormat::Json => print_json(&margin_as_json(&report, currency)),
    }
    Ok(())
}

fn margin_as_json(report: &MarginReport, currency: &str) -> serde_json::Value {
    let rows = report.rows.iter().map(|(key, sums)| {
        let mut row = sums_as_json(sums);
        row["carrier"] = json!(key.carrier);
        row["country"] = json!(key.country.as_ref().map(Country::as_str));
        row["account"] = json!(key.account);
        row
    });
    json!({
        "currency": currency,
        "rows": rows.collect::<Vec<_>>(),
        "total": sums_as_json(&report.total),
    })
}

fn sums_as_json(sums: &MarginSums) -> serde_json::Value {
    json!({
        "messages": sums.messages,
        "parts": sums.parts,
        "price": sums.price.to_string(),
        "cost": sums.cost.to_string(),
        "margin": sums.margin().to_string(),
        "withoutCost": sums.without_cost,
    })
}
