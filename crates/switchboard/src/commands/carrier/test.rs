//! `switchboard carrier test`

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use domain::ports::Store;
use domain::{Channel, Code, Outcome};
use engine::catalogue::plans::{TestAnswer, TestInput};

use crate::cli::CarrierTest;
use crate::commands::{catalogues, store};
use crate::config::Config;
use crate::stored_plan::all_carriers;
use crate::stored_plan::trial::{Trial, find_report};

/// How long a report is waited for.
const MAX_WAIT: Duration = Duration::from_mins(2);
/// Between two looks at the reports.
const POLL: Duration = Duration::from_millis(500);

/// Sends one message by one carrier and follows it to its report.
pub(super) async fn run(config: &Config, test: &CarrierTest) -> anyhow::Result<()> {
    let store = store(config).await?;
    let carriers = all_carriers(config, &store).await?;
    let input = TestInput {
        carrier: test.name.clone(),
        to: test.to,
        from: test.from.clone(),
        text: test.text.clone(),
    };
    let trial = Trial::new(config, &*store, &carriers, &input).await?;
    let message = &trial.message;
    let what = if message.channel == Channel::Hlr {
        "lookup"
    } else {
        "message"
    };
    println!(
        "sending {what} {} to {} by '{}'",
        message.id, message.to, test.name
    );
    let began = Instant::now();
    let catalogues = Arc::new(catalogues(store.clone()).await?);
    let sent = trial.send(config, &store, catalogues).await?;
    let took = sent.took_ms;
    let references = match sent.answer {
        TestAnswer::Taken { references } => references,
        TestAnswer::Answered(answer) => {
            println!("answered after {took} ms: {answer}");
            return Ok(());
        }
        TestAnswer::Failed(reason) => bail!(reason),
    };
    println!("taken after {took} ms; waiting for the report, which the running service receives");
    let outcome = wait_for_report(&*store, &test.name, &references).await?;
    let seconds = began.elapsed().as_secs();
    match outcome {
        Outcome::Delivered => println!("delivered after {seconds} s"),
        Outcome::Failed(code) => bail!("failed after {seconds} s: {code}"),
        Outcome::Expired => bail!("expired after {seconds} s: {}", Code::EXPIRED),
    }
    Ok(())
}

/// Waits until the running service has stored the report.
async fn wait_for_report(
    store: &dyn Store,
    carrier: &str,
    references: &[String],
) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    while began.elapsed() < MAX_WAIT {
        if let Some(report) = find_report(store, carrier, references).await? {
            return Ok(report.outcome);
        }
        tokio::time::sleep(POLL).await;
    }
    ensure!(
        store.list_nodes().await?.iter().any(|node| !node.is_dead),
        "no report came, and the service does not run: start it with `switchboard serve`"
    );
    bail!(
        "no report came within {} s; check that the carrier reaches this service at the address of its reports",
        MAX_WAIT.as_secs()
    )
}
