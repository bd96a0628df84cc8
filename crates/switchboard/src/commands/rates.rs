//! `switchboard rates …`

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::ports::CatalogueKind;
use domain::{AccountId, Channel};
use engine::catalogue::prices::{Format, PriceDifference, PriceList, PriceRow};
use engine::catalogue::{ImportError, PricePlan, price_kind};
use engine::{By, Catalogues};
use serde_json::{Value, json};

use super::{catalogues, files, history, print_json, refused, store};
use crate::cli::{ListFormat, RatesCommand, RatesExport, RatesImport, WhichList};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: RatesCommand) -> anyhow::Result<()> {
    match command {
        RatesCommand::Import(args) => import(config, args).await,
        RatesCommand::History { which, output } => {
            let (catalogues, account) = open(config, &which).await?;
            if account.is_none() {
                warn_of_demonstration(&catalogues, which.channel);
            }
            let kind = price_kind(which.channel, account);
            history::show(&catalogues, kind, output).await
        }
        RatesCommand::Export(args) => export(config, args).await,
    }
}

/// The catalogues, and the account that is meant.
async fn open(
    config: &Config,
    which: &WhichList,
) -> anyhow::Result<(Catalogues, Option<AccountId>)> {
    let store = store(config).await?;
    let account = super::account_id(&store, which.account.as_deref()).await?;
    Ok((catalogues(store).await?, account))
}

async fn import(config: &Config, args: RatesImport) -> anyhow::Result<()> {
    let format = args.format.or_else(|| format_of(&args.file));
    let name = files::shown(&args.file);
    let format = format.with_context(|| {
        format!("{name} may be CSV or JSON; say which with --format csv or --format json")
    })?;
    let text = files::read_text(&args.file)?;
    let (catalogues, account) = open(config, &args.which).await?;
    let plan = plan(
        &catalogues,
        args.which.channel,
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
        Some(catalogues.import_prices(&By::command_line(), plan).await?)
    };
    if args.output.json {
        let mut shown = difference_as_json(&difference);
        shown["account"] = json!(args.which.account);
        shown["channel"] = json!(args.which.channel.name());
        shown["version"] = json!(version);
        print_json(&shown);
    } else {
        history::print_imported(version);
    }
    Ok(())
}

/// Checks a list that is to be imported.
fn plan(
    catalogues: &Catalogues,
    channel: Channel,
    account: Option<AccountId>,
    text: &str,
    format: ListFormat,
    name: &str,
) -> anyhow::Result<PricePlan> {
    let plan = match catalogues.plan_prices(channel, account, text, as_engine(format)) {
        Err(ImportError::Prices(problems)) => return Err(refused(name, &problems)),
        plan => plan?,
    };
    ensure!(
        !plan.leaves_nothing(),
        "{name} has no rows: nothing could be sent any more. Give at least the row of a default; nothing was changed"
    );
    Ok(plan)
}

/// What the end of a file's name says.
fn format_of(file: &Path) -> Option<ListFormat> {
    let extension = file.extension()?.to_str()?;
    [("csv", ListFormat::Csv), ("json", ListFormat::Json)]
        .into_iter()
        .find_map(|(known, format)| extension.eq_ignore_ascii_case(known).then_some(format))
}

const fn as_engine(format: ListFormat) -> Format {
    match format {
        ListFormat::Csv => Format::Csv,
        ListFormat::Json => Format::Json,
    }
}

async fn export(config: &Config, args: RatesExport) -> anyhow::Result<()> {
    let (catalogues, account) = open(config, &args.which).await?;
    let channel = args.which.channel;
    let by_name = || args.output.as_deref().and_then(format_of);
    let format = args.format.or_else(by_name).unwrap_or(ListFormat::Csv);
    let mut text = if let Some(version) = args.version {
        former(&catalogues, price_kind(channel, account), version, format).await?
    } else {
        if account.is_none() {
            warn_of_demonstration(&catalogues, channel);
        }
        in_force(&catalogues, channel, account, format)
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    files::write_text(args.output.as_deref(), &text)
}

fn in_force(
    catalogues: &Catalogues,
    channel: Channel,
    account: Option<AccountId>,
    format: ListFormat,
) -> String {
    let live = catalogues.live();
    let prices = live.prices(channel);
    match account {
        None => written(&prices.list, format),
        Some(account) => match prices.of_account.get(&account) {
            Some(list) => written(list, format),
            None => written(&PriceList::default(), format),
        },
    }
}

fn written(list: &PriceList, format: ListFormat) -> String {
    match format {
        ListFormat::Csv => list.to_csv(),
        ListFormat::Json => list.to_json(),
    }
}

/// A former version is kept as CSV, and so it is printed as it was even where the reference data has changed since.
async fn former(
    catalogues: &Catalogues,
    kind: CatalogueKind,
    version: u32,
    format: ListFormat,
) -> anyhow::Result<String> {
    let found = catalogues.version(kind, version).await?;
    let Some(csv) = found else {
        bail!("there is no version {version}; `switchboard rates history` shows those there are");
    };
    if format == ListFormat::Csv {
        return Ok(csv);
    }
    let live = catalogues.live();
    match PriceList::read(&csv, Format::Csv, &live.reference) {
        Ok(list) => Ok(list.to_json()),
        Err(problems) => Err(refused(&format!("version {version}"), &problems).context(
            "today's reference data does not know all of it; export it with --format csv",
        )),
    }
}

/// Nobody should take made-up prices for their own.
pub(super) fn warn_of_demonstration(catalogues: &Catalogues, channel: Channel) {
    if catalogues.live().prices(channel).is_demonstration {
        eprintln!(
            "Nobody has imported a price list: the demonstration list is in force. It is made up; import your own before you bill anybody."
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
    fn the_end_of_a_name_says_the_format() {
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
