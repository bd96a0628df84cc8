//! `switchboard reference …`

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::billing::Priced;
use domain::ports::CatalogueKind;
use engine::catalogue::prices::{Format, PriceList, Prices};
use engine::catalogue::{ImportError, ReferenceFiles, ReferencePlan};
use engine::{Actor, Catalogues};
use indicatif::ProgressBar;
use numbering::reference::{Changes, Difference, Files, Reference};
use serde_json::{Value, json};

use super::{catalogues, files, history, print_json, progress, refused, store};
use crate::cli::{ReferenceCommand, ReferenceImport};
use crate::config::Config;

/// The files, in the order in which they refer to each other.
const NAMES: [&str; 4] = ["operators.csv", "networks.csv", "prefixes.csv", "areas.csv"];

/// Read, check, store.
const STEPS: u64 = 3;

pub(super) async fn run(config: &Config, command: ReferenceCommand) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    match command {
        ReferenceCommand::Import(args) => import(&catalogues, args).await,
        ReferenceCommand::History { output } => {
            history::show(&catalogues, CatalogueKind::Reference, output).await
        }
        ReferenceCommand::Export { folder } => export(&catalogues, &folder).await,
    }
}

async fn import(catalogues: &Catalogues, args: ReferenceImport) -> anyhow::Result<()> {
    let bar = progress::steps(STEPS, !args.output.json);
    let CheckedImport { plan, lost_prices } = check(catalogues, &args.folder, &bar).await?;
    let difference = plan.difference.clone();
    if !args.output.json {
        bar.suspend(|| print_checked(&difference, &lost_prices));
    }
    if let Some(refusal) = difference.refusal().filter(|_| !args.force) {
        bail!("{refusal}; if this is intended, use --force. Nothing was changed");
    }
    let version = if args.dry_run {
        None
    } else {
        bar.set_message("storing");
        Some(
            catalogues
                .import_reference(&Actor::command_line(), plan)
                .await?,
        )
    };
    bar.finish_and_clear();
    if args.output.json {
        let mut shown = as_json(&difference, version);
        shown["lostPrices"] = json!(lost_prices);
        print_json(&shown);
    } else {
        history::print_imported(version);
    }
    Ok(())
}

struct CheckedImport {
    plan: ReferencePlan,
    /// Rows of price lists that would no longer apply, each with the reason.
    lost_prices: Vec<String>,
}

/// Reads and checks the files of the folder; missing files are replaced by those in effect.
async fn check(
    catalogues: &Catalogues,
    folder: &Path,
    bar: &ProgressBar,
) -> anyhow::Result<CheckedImport> {
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    bar.set_message("reading");
    let mut files = in_effect(catalogues).await?;
    let replaced = replace(&mut files, folder)?;
    ensure!(
        replaced > 0,
        "{} contains none of {}; `switchboard reference export FOLDER` writes them in the right format",
        folder.display(),
        NAMES.join(", ")
    );
    bar.inc(1);
    bar.set_message("checking");
    let lost_prices = lost_prices(catalogues, &files);
    let planned = catalogues.plan_reference(files);
    bar.inc(1);
    match planned {
        Err(ImportError::Reference(problems)) => {
            Err(refused(&folder.display().to_string(), &problems))
        }
        planned => Ok(CheckedImport {
            plan: planned?,
            lost_prices,
        }),
    }
}

/// Prices name mobile operators, so removing or renaming one removes its price.
fn lost_prices(catalogues: &Catalogues, files: &ReferenceFiles) -> Vec<String> {
    let files = Files {
        operators: &files.operators,
        networks: &files.networks,
        prefixes: &files.prefixes,
        areas: &files.areas,
    };
    let Ok(reference) = Reference::parse(&files) else {
        return Vec::new();
    };
    let live = catalogues.live();
    Priced::ALL
        .into_iter()
        .flat_map(|priced| lists(priced, live.prices(priced)))
        .flat_map(|(list_name, list)| {
            let read = PriceList::read(&list.to_csv(), Format::Csv, &reference);
            let problems = read.err().unwrap_or_default().into_iter();
            problems.map(move |problem| format!("{list_name}, {problem}"))
        })
        .collect()
}

/// Every price list of one kind, with its name.
fn lists(priced: Priced, of: &Prices) -> Vec<(String, &PriceList)> {
    let mut lists = vec![(format!("the price list for {priced}"), &*of.list)];
    let own = of.of_account.iter();
    lists.extend(own.map(|(account, list)| {
        let name = format!("the prices of account {account} for {priced}");
        (name, &**list)
    }));
    lists
}

fn print_checked(difference: &Difference, lost_prices: &[String]) {
    print!("{difference}");
    if !lost_prices.is_empty() {
        eprintln!(
            "These prices would no longer count; import price lists without them, or keep the operators:"
        );
    }
    for lost in lost_prices {
        eprintln!("  {lost}");
    }
}

/// Replaces the files that the folder contains, and returns how many.
fn replace(files: &mut ReferenceFiles, folder: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    for (name, text) in NAMES.into_iter().zip(texts_mut(files)) {
        let path = folder.join(name);
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => {
                *text = files::read_text(&path)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// In the order of [`NAMES`].
fn texts_mut(files: &mut ReferenceFiles) -> [&mut String; 4] {
    [
        &mut files.operators,
        &mut files.networks,
        &mut files.prefixes,
        &mut files.areas,
    ]
}

async fn in_effect(catalogues: &Catalogues) -> anyhow::Result<ReferenceFiles> {
    let version = catalogues.live().version(CatalogueKind::Reference);
    if version == 0 {
        return Ok(ReferenceFiles::embedded());
    }
    let found = catalogues
        .version(CatalogueKind::Reference, version)
        .await?;
    let content = found.with_context(|| format!("version {version} is gone; try again"))?;
    serde_json::from_str(&content)
        .with_context(|| format!("version {version} cannot be read by this program"))
}

async fn export(catalogues: &Catalogues, folder: &Path) -> anyhow::Result<()> {
    let mut files = in_effect(catalogues).await?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, text) in NAMES.into_iter().zip(texts_mut(&mut files)) {
        files::write_text(Some(&folder.join(name)), text)?;
    }
    println!("{} were written to {}.", NAMES.join(", "), folder.display());
    Ok(())
}

fn as_json(difference: &Difference, version: Option<u32>) -> Value {
    json!({
        "version": version,
        "operators": changes_as_json(&difference.operators),
        "networks": changes_as_json(&difference.networks),
        "prefixes": changes_as_json(&difference.prefixes),
        "areas": changes_as_json(&difference.areas),
    })
}

fn changes_as_json(changes: &Changes) -> Value {
    json!({
        "before": changes.before,
        "after": changes.after,
        "added": changes.added,
        "removed": changes.removed,
        "changed": changes.changed,
    })
}
