//! `switchboard rates …`

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::AccountId;
use domain::billing::Priced;
use domain::ports::CatalogueKind;
use engine::catalogue::prices::{Format, PriceDifference, PriceList, PriceRow};
use engine::catalogue::{ImportError, PricePlan, price_kind};
use engine::{Actor, Catalogues};
use serde_json::{Value, json};

use super::{catalogues, files, history, print_json, refused, store};
use crate::cli::{ListFormat, PriceListSelector, RatesCommand, RatesExport, RatesImport};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: RatesCommand) -> anyhow::Result<()> {
    match command {
        RatesCommand::Import(args) => import(config, args).await,
        RatesCommand::History { selector, output } => {
            let (catalogues, account) = open(config, &selector).await?;
            if account.is_none() {
                warn_of_demonstration(&catalogues, selector.channel);
            }
            let kind = price_kind(selector.channel, account);
            history::show(&catalogues, kind, output).await
        }
        RatesCommand::Export(args) => export(config, args).await,
    }
}

/// The catalogues, and the ID of the named account.
async fn open(
    config: &Config,
    selector: &PriceListSelector,
) -> anyhow::Result<(Catalogues, Option<AccountId>)> {
    let store = store(config).await?;
    let account = super::account_id(&store, selector.account.as_deref()).await?;
    Ok((catalogues(store).await?, account))
}

async fn import(config: &Config, args: RatesImport) -> anyhow::Result<()> {
    let format = args.format.or_else(|| format_of(&args.file));
    let name = files::name_of(&args.file);
    let format = format.with_context(|| {
        format!("{name} may be CSV or JSON; give --format csv or --format json")
    })?;
    let text = files::read_text(&args.file)?;
    let (catalogues, account) = open(config, &args.selector).await?;
    let plan = plan(
        &catalogues,
        args.selector.channel,
        account,
        &text,
        format,
        &name,
    )?;
    let difference = plan.difference.clone();
    if !args.output.json {
        print!("{difference}");
    }
    let version = if args.dry_run {
        None
    } else {
        Some(
            catalogues
                .import_prices(&Actor::command_line(), plan)
                .await?,
        )
    };
    if args.output.json {
        let mut shown = difference_as_json(&difference);
        shown["account"] = json!(args.selector.account);
        shown["channel"] = json!(args.selector.channel.name());
        shown["version"] = json!(version);
        print_json(&shown);
    } else {
        history::print_imported(version);
    }
    Ok(())
}

/// Checks a price list before its import.
fn plan(
    catalogues: &Catalogues,
    channel: Priced,
    account: Option<AccountId>,
    text: &str,
    format: ListFormat,
    name: &str,
) -> anyhow::Result<PricePlan> {
    let plan = match catalogues.plan_prices(channel, account, text, engine_format(format)) {
        Err(ImportError::Prices(problems)) => return Err(refused(name, &problems)),
        plan => plan?,
    };
    ensure!(
        !plan.leaves_nothing(),
        "{name} has no rows, so nothing could be sent any more. Give at least a default row; nothing was changed"
    );
    Ok(plan)
}

/// The format that the file extension tells.
fn format_of(file: &Path) -> Option<ListFormat> {
    let extension = file.extension()?.to_str()?;
    [("csv", ListFormat::Csv), ("json", ListFormat::Json)]
        .into_iter()
        .find_map(|(known, format)| extension.eq_ignore_ascii_case(known).then_some(format))
}

const fn engine_format(format: ListFormat) -> Format {
    match format {
        ListFormat::Csv => Format::Csv,
        ListFormat::Json => Format::Json,
    }
}

async fn export(config: &Config, args: RatesExport) -> anyhow::Result<()> {
    let (catalogues, account) = open(config, &args.selector).await?;
    let channel = args.selector.channel;
    let by_name = || args.output.as_deref().and_then(format_of);
    let format = args.format.or_else(by_name).unwrap_or(ListFormat::Csv);
    let mut text = if let Some(version) = args.version {
        stored_version(&catalogues, price_kind(channel, account), version, format).await?
    } else {
        if account.is_none() {
            warn_of_demonstration(&catalogues, channel);
        }
        in_effect(&catalogues, channel, account, format)
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    files::write_text(args.output.as_deref(), &text)
}

fn in_effect(
    catalogues: &Catalogues,
    channel: Priced,
    account: Option<AccountId>,
    format: ListFormat,
) -> String {
    let live = catalogues.live();
    let prices = live.prices(channel);
    match account {
        None => render(&prices.list, format),
        Some(account) => match prices.of_account.get(&account) {
            Some(list) => render(list, format),
            None => render(&PriceList::default(), format),
        },
    }
}

fn render(list: &PriceList, format: ListFormat) -> String {
    match format {
        ListFormat::Csv => list.to_csv(),
        ListFormat::Json => list.to_json(),
    }
}

/// Versions are stored as CSV, so an old one is printed unchanged even if the reference data has changed since.
async fn stored_version(
    catalogues: &Catalogues,
    kind: CatalogueKind,
    version: u32,
    format: ListFormat,
) -> anyhow::Result<String> {
    let found = catalogues.version(kind, version).await?;
    let Some(csv) = found else {
        bail!("there is no version {version}; `switchboard rates history` lists the versions");
    };
    if format == ListFormat::Csv {
        return Ok(csv);
    }
    let live = catalogues.live();
    match PriceList::read(&csv, Format::Csv, &live.reference) {
        Ok(list) => Ok(list.to_json()),
        Err(problems) => Err(refused(&format!("version {version}"), &problems)
            .context("the current reference data does not contain all of it; use --format csv")),
    }
}

/// Warns that the prices in effect are made up.
pub(super) fn warn_of_demonstration(catalogues: &Catalogues, channel: Priced) {
    if catalogues.live().prices(channel).is_demonstration {
        eprintln!(
            "No price list was imported: the demonstration list is in force. Its prices are made up; import your own before you bill anybody."
        );
    }
}

fn difference_as_json(difference: &PriceDifference) -> Value {
    let rows = |rows: &[PriceRow]| rows.iter().map(row_as_json).collect::<Vec<_>>();
    let changed = difference.changed.iter().map(|(row, before)| {
        let mut shown = row_as_json(row);
        shown["before"] = json!(before.to_string());
        shown
    });
    json!({
        "added": rows(&difference.added),
        "changed": changed.collect::<Vec<_>>(),
        "removed": rows(&difference.removed),
        "same": difference.same,
    })
}

fn row_as_json(row: &PriceRow) -> Value {
    json!({
        "country": row.country.as_ref().map(domain::Country::as_str),
        "operator": row.operator,
        "network": row.network,
        "mcc": row.mcc,
        "mnc": row.mnc,
        "rate": row.rate.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_tells_the_format() {
        for (name, expected) in [
            ("a.csv", Some(ListFormat::Csv)),
            ("a.JSON", Some(ListFormat::Json)),
            ("a.csv.txt", None),
            ("csv", None),
            ("-", None),
        ] {
            assert_eq!(format_of(Path::new(name)), expected, "{name}");
        }
    }
}
