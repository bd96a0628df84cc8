//! Receives the reports of all upstreams and passes each to the carrier that its URL names.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use domain::MessageId;
use domain::ports::{CarrierPost, CarrierReports, ReportResult};

use super::Upstream;
use crate::proof::ProofKey;
use crate::texts;

/// How many former tokens of a carrier are remembered.
const MAX_FORMER_KEYS: usize = 4;

/// The carriers that send reports by HTTP, by name.
#[derive(Default)]
pub struct UpstreamReports {
    carriers: RwLock<Arc<HashMap<String, ReportingCarrier>>>,
}

/// A carrier and the keys of its callback URLs.
#[derive(Clone)]
struct ReportingCarrier {
    upstream: Arc<Upstream>,
    /// Keys of tokens that were replaced at run time, for messages that were sent with them.
    former: Vec<ProofKey>,
}

impl UpstreamReports {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Replaces the list of carriers. Reports about messages of a replaced carrier with the same name are still
    /// accepted, even if the token has changed.
    pub fn set(&self, upstreams: Vec<Arc<Upstream>>) {
        let mut carriers = self.carriers.write().expect("no holder panics");
        let next = upstreams.into_iter().map(|upstream| {
            let name = upstream.settings.name.clone();
            let former = carriers
                .get(&name)
                .map(|reporting| reporting.former_for(&upstream));
            let reporting = ReportingCarrier {
                upstream,
                former: former.unwrap_or_default(),
            };
            (name, reporting)
        });
        *carriers = Arc::new(next.collect());
    }

    fn find(&self, carrier: &str) -> Option<ReportingCarrier> {
        let carriers = self.carriers.read().expect("no holder panics").clone();
        carriers.get(carrier).cloned()
    }
}

impl ReportingCarrier {
    /// The keys of the tokens before `next`'s, the latest first.
    fn former_for(&self, next: &Upstream) -> Vec<ProofKey> {
        let is_other = self.upstream.settings.token != next.settings.token;
        let last = is_other.then(|| self.upstream.proofs.clone());
        let all = last.into_iter().chain(self.former.iter().cloned());
        all.take(MAX_FORMER_KEYS).collect()
    }

    fn admits(&self, carrier: &str, subject: impl Display + Copy, proof: &str) -> bool {
        let mut keys = std::iter::once(&self.upstream.proofs).chain(&self.former);
        keys.any(|key| key.verifies(carrier, subject, proof))
    }
}

#[async_trait]
impl CarrierReports for UpstreamReports {
    async fn take(
        &self,
        carrier: &str,
        message: MessageId,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult {
        match self.find(carrier) {
            Some(reporting) if reporting.admits(carrier, message, proof) => {
                reporting.upstream.take_report(message, post.body).await
            }
            Some(_) => ReportResult::UnknownAddress,
            None => ReportResult::Unproven,
        }
    }

    async fn take_text(&self, carrier: &str, proof: &str, post: CarrierPost<'_>) -> ReportResult {
        match self.find(carrier) {
            Some(reporting) if reporting.admits(carrier, texts::SUBJECT, proof) => {
                reporting.upstream.take_text(post.body).await
            }
            _ => ReportResult::Unproven,
        }
    }
}
