//! The imported versions of a catalogue.

use domain::ports::{CatalogueEntry, CatalogueKind};
use engine::Catalogues;
use serde_json::json;

use super::{TIME, print_json};
use crate::cli::Output;

pub(super) async fn show(
    catalogues: &Catalogues,
    kind: CatalogueKind,
    output: Output,
) -> anyhow::Result<()> {
    let versions = catalogues.history(kind).await?;
    if output.json {
        print_json(&versions.iter().map(as_json).collect());
    } else if versions.is_empty() {
        println!("Nothing was imported yet.");
    } else {
        print_table(&versions);
    }
    Ok(())
}

/// Prints the result of an import; `None` means a dry run.
pub(super) fn print_imported(version: Option<u32>) {
    match version {
        Some(version) => println!("Version {version} is in force on every node within seconds."),
        None => println!("Nothing was changed: this was a dry run."),
    }
}

fn as_json(entry: &CatalogueEntry) -> serde_json::Value {
    json!({
        "version": entry.version,
        "at": entry.at.to_string(),
        "rows": entry.rows,
    })
}

fn print_table(versions: &[CatalogueEntry]) {
    println!("{:>7}  {:<20}  {:>8}", "VERSION", "IMPORTED", "ROWS");
    for entry in versions {
        let at = entry.at.strftime(TIME).to_string();
        println!("{:>7}  {at:<20}  {:>8}", entry.version, entry.rows);
    }
}
