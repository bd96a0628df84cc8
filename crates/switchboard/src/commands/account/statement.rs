//! `switchboard account statement`

use std::sync::Arc;

use anyhow::ensure;
use domain::Clock as _;
use engine::clock::SystemClock;
use engine::reading::statement::{Month, Statements};
use engine::{Accounts, Catalogues};

use crate::cli::ReportFormat;
use crate::commands::{print_json, store};
use crate::config::Config;

pub(super) async fn show(
    config: &Config,
    name: &str,
    month: Month,
    format: ReportFormat,
) -> anyhow::Result<()> {
    let store = store(config).await?;
    let clock = Arc::new(SystemClock);
    let now = clock.now();
    ensure!(
        month.start() <= now,
        "{month} has not begun; give this month or an earlier one"
    );
    let account = Accounts::new(store.clone(), clock.clone())
        .get(name)
        .await?;
    let catalogues = Arc::new(Catalogues::load(store.clone(), clock).await?);
    let statement = Statements::new(store.clone(), store, catalogues)
        .statement((account.id, name), month, &config.billing.currency, now)
        .await?;
    match format {
        ReportFormat::Csv => print!("{}", statement.to_csv()),
        ReportFormat::Json => print_json(&statement.to_json()),
    }
    Ok(())
}
