//! Counts messages when they end, and learns the networks that their receipts name.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use domain::ports::Ended;
use domain::{Channel, Country, Outcome};
use metrics::{Counter, Histogram, counter, histogram};

use crate::catalogue::Catalogues;
use crate::ported::{PortedNumbers, Source};

/// The label of messages that no carrier took or reported on.
const NO_CARRIER: &str = "none";
/// The label of messages whose country is not known.
const UNKNOWN_COUNTRY: &str = "unknown";

/// The labels of a counter besides the carrier. Each has a small number of values, so the number of counters is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Labels {
    channel: Channel,
    country: Option<Country>,
    outcome: &'static str,
}

/// Counters that are looked up once and then only incremented, because every message counts.
pub(crate) struct EndedCounters {
    catalogues: Arc<Catalogues>,
    ported: Arc<PortedNumbers>,
    by_carrier: RwLock<HashMap<Box<str>, HashMap<Labels, Counter>>>,
    seconds: Histogram,
}

impl EndedCounters {
    pub(crate) fn new(catalogues: Arc<Catalogues>, ported: Arc<PortedNumbers>) -> Arc<Self> {
        Arc::new(Self {
            catalogues,
            ported,
            by_carrier: RwLock::default(),
            seconds: histogram!("switchboard_message_seconds"),
        })
    }

    /// Counts a message that ended by an answer or a receipt of this carrier, if any.
    pub(crate) fn count(&self, carrier: Option<&str>, ended: &Ended) {
        if let Some((number, network)) = &ended.named {
            let source = match ended.channel {
                Channel::Hlr => Source::Lookup,
                Channel::Sms | Channel::Viber => Source::Receipt,
            };
            let live = self.catalogues.live();
            let reference = &live.reference;
            self.ported
                .learn(reference, number, *network, source, ended.ended_at);
        }
        let took = ended.ended_at.duration_since(ended.began_at);
        self.seconds.record(took.as_secs_f64().max(0.0));
        let labels = Labels {
            channel: ended.channel,
            country: self.country(ended),
            outcome: outcome_label(ended.outcome),
        };
        let carrier = carrier.unwrap_or(NO_CARRIER);
        let known = self.by_carrier.read().expect("no holder panics");
        if let Some(counter) = known.get(carrier).and_then(|known| known.get(&labels)) {
            return counter.increment(1);
        }
        drop(known);
        let mut known = self.by_carrier.write().expect("no holder panics");
        let of_carrier = known.entry(carrier.into()).or_default();
        let counter = of_carrier
            .entry(labels)
            .or_insert_with(|| new_counter(carrier, labels));
        counter.increment(1);
    }

    fn country(&self, ended: &Ended) -> Option<Country> {
        let live = self.catalogues.live();
        let entry = live.reference.find_network(ended.network?).next()?;
        entry.country
    }
}

fn new_counter(carrier: &str, labels: Labels) -> Counter {
    let country = labels
        .country
        .map_or_else(|| UNKNOWN_COUNTRY.to_owned(), |country| country.to_string());
    counter!(
        "switchboard_messages_ended_total",
        "channel" => labels.channel.name(),
        "carrier" => carrier.to_owned(),
        "country" => country,
        "outcome" => labels.outcome
    )
}

const fn outcome_label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Failed(_) => "failed",
        Outcome::Expired => "expired",
    }
}
