//! `switchboard carrier test`

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, Claim, QueuedMessage, Receipt};
use domain::message::text::measure;
use domain::ports::{
    AwaitedReport, DeliveredCopy, DuePoll, ForwardedText, HandsetSink, HandsetText, ReceiptError,
    ReceiptSink, ReportPolls, Store, StoreError,
};
use domain::{
    AccountId, Channel, Clock, Code, MessageId, Originator, Outcome, Priority, Timestamp,
};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use outbound::http::{HttpPorts, PROOF_PURPOSE};
use outbound::{HttpCarrier, Upstream};

use crate::carriers::upstream_settings;
use crate::cli::CarrierTest;
use crate::commands::{catalogues, store};
use crate::config::Config;
use crate::config::carriers::Carrier;
use crate::outside;
use crate::stored_plan::all_carriers;

const DEFAULT_TEXT: &str = "Test message";
/// How long a report is waited for.
const MAX_WAIT: Duration = Duration::from_mins(2);
/// Between two looks at the reports.
const POLL: Duration = Duration::from_millis(500);
/// Of so many unmatched receipts, the newest first, the message's own is looked for.
const MAX_UNMATCHED: u32 = 1000;
/// How long the message is valid.
const VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// Sends one message by one carrier and follows it to its report. It belongs to no account and costs nothing here.
pub(super) async fn run(config: &Config, test: &CarrierTest) -> anyhow::Result<()> {
    let store = store(config).await?;
    let carriers = all_carriers(config, &store).await?;
    let named = carriers.iter().find(|carrier| carrier.name() == test.name);
    let named = named.with_context(|| {
        let known: Vec<&str> = carriers.iter().map(Carrier::name).collect();
        format!(
            "there is no carrier '{}'; there are {}",
            test.name,
            known.join(", ")
        )
    })?;
    let id = store.reserve_ids(1).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let queued = message(config, named, test, id, clock.now())?;
    let what = if queued.channel == Channel::Hlr {
        "lookup"
    } else {
        "message"
    };
    println!("sending {what} {id} to {} by '{}'", queued.to, test.name);
    let began = Instant::now();
    let (answer, note) = submit(config, named, &queued, &store, clock).await?;
    let took = began.elapsed().as_millis();
    let references = match answer {
        CarrierAnswer::Taken(references) => references,
        CarrierAnswer::PartlyTaken { references, code } => {
            bail!(
                "the carrier took {} parts and refused the others: {code}",
                references.len()
            )
        }
        CarrierAnswer::Answered(subscriber) => {
            println!("answered after {took} ms: {}", subscriber.payload(id));
            return Ok(());
        }
        CarrierAnswer::Unknown => bail!(
            "the carrier did not answer, and may have the message{}",
            shown(note)
        ),
        CarrierAnswer::NotNow(code) => {
            bail!("the carrier cannot take it now: {code}{}", shown(note))
        }
        CarrierAnswer::Declined(code) | CarrierAnswer::Refused(code) => {
            bail!("the carrier refuses it: {code}{}", shown(note))
        }
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

fn shown(note: Option<String>) -> String {
    note.map_or_else(String::new, |note| format!(" ({note})"))
}

fn message(
    config: &Config,
    carrier: &Carrier,
    test: &CarrierTest,
    id: MessageId,
    now: Timestamp,
) -> anyhow::Result<QueuedMessage> {
    let channel = carrier.channels().into_iter().next();
    let channel = channel.context("the carrier has no channel")?;
    let is_lookup = channel == Channel::Hlr;
    let words = test.text.as_deref().unwrap_or(DEFAULT_TEXT);
    let from = match &test.from {
        Some(from) => Originator::parse(from).context("--from")?,
        None => config.pin_from()?,
    };
    Ok(QueuedMessage {
        id,
        account: AccountId::new(1).context("an account has the number 1")?,
        channel,
        to: test.to,
        from: (!is_lookup).then_some(from),
        shape: measure(words).context("--text")?,
        text: if is_lookup {
            String::new()
        } else {
            words.to_owned()
        },
        interactive: None,
        udh: None,
        priority: Priority::High,
        test_mode: None,
        notice: true,
        expires_at: now + VALIDITY,
        claim: Claim {
            due_at: now,
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        trace: None,
    })
}

/// Sends the message, and returns the answer and why the carrier is not up.
async fn submit(
    config: &Config,
    carrier: &Carrier,
    queued: &QueuedMessage,
    store: &Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(CarrierAnswer, Option<String>)> {
    let base_url = super::base_url(config, &**store).await?;
    let carrier: Arc<dyn domain::ports::Carrier> = match carrier {
        Carrier::Http(settings) => {
            let keys = store.derived_keys(PROOF_PURPOSE);
            let catalogues = Arc::new(catalogues(store.clone()).await?);
            let ports = HttpPorts {
                receipts: Arc::new(Nowhere),
                handsets: Arc::new(Nowhere),
                numbers: outside::number_locator(catalogues),
                polls: Arc::new(AskedByTheService(store.clone())),
                clock,
            };
            HttpCarrier::start(settings.settings(&base_url, keys)?, ports)
        }
        Carrier::Upstream(settings) => {
            let settings = upstream_settings(settings, &base_url)?;
            Upstream::start(settings, Arc::new(Nowhere), Arc::new(Nowhere), clock)
        }
        Carrier::Smpp(_) | Carrier::Simulator(_) => bail!(
            "only carriers of the kinds http and upstream can be tested so; `switchboard config check --connect` connects \
             to all others"
        ),
    };
    let answer = carrier.submit(queued).await;
    let note = carrier.state().note;
    carrier.stop().await;
    Ok((answer, note))
}

/// Waits until the running service has stored the report. The message is not in the database, so its report stays
/// unmatched.
async fn wait_for_report(
    store: &dyn Store,
    carrier: &str,
    references: &[String],
) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    while began.elapsed() < MAX_WAIT {
        let unmatched = store.list_unmatched(MAX_UNMATCHED).await?;
        let own = unmatched
            .iter()
            .find(|one| one.carrier == carrier && references.contains(&one.reference));
        if let Some(outcome) = own.and_then(|own| own.outcome) {
            return Ok(outcome);
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

/// Leaves the questions about reports to the running service.
struct AskedByTheService(Arc<dyn Store>);

#[async_trait]
impl ReportPolls for AskedByTheService {
    async fn add(&self, awaited: AwaitedReport) -> Result<(), ReceiptError> {
        let added = self.0.add_polls(&[awaited]).await;
        added.map_err(|_| ReceiptError::Store)
    }

    async fn claim(&self, _: &str, _: Duration, _: u32) -> Result<Vec<DuePoll>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &str, _: &[MessageId]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Takes nothing: whatever arrives in this process arrives again at the running service.
struct Nowhere;

#[async_trait]
impl ReceiptSink for Nowhere {
    async fn receive(&self, _: Receipt) -> Result<bool, ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    async fn mark_seen(&self, _: CarrierRef, _: Timestamp) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }
}

#[async_trait]
impl HandsetSink for Nowhere {
    async fn receive_once(&self, _: [u8; 16], _: ForwardedText) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    async fn receive(&self, _: DeliveredCopy, _: HandsetText) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    fn confirm(&self, _: &[(i64, i64)]) {}

    fn end_session(&self, _: i64) {}
}
