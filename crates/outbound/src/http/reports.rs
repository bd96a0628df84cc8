//! Receives what providers send, and passes it to the carrier that the URL names.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use domain::MessageId;
use domain::ports::{CarrierPost, CarrierReports, ReportResult};

use super::HttpCarrier;

/// The HTTP carriers, by name. What is for another carrier goes to `others`.
pub struct HttpReports {
    carriers: RwLock<Arc<HashMap<String, Arc<HttpCarrier>>>>,
    others: Arc<dyn CarrierReports>,
}

impl HttpReports {
    pub fn new(others: Arc<dyn CarrierReports>) -> Arc<Self> {
        Arc::new(Self {
            carriers: RwLock::default(),
            others,
        })
    }

    /// Replaces the list of carriers.
    pub fn set(&self, carriers: impl IntoIterator<Item = Arc<HttpCarrier>>) {
        let carriers = carriers.into_iter();
        let named = carriers.map(|carrier| (carrier.settings.name.clone(), carrier));
        *self.carriers.write().expect("no holder panics") = Arc::new(named.collect());
    }

    fn find(&self, carrier: &str) -> Option<Arc<HttpCarrier>> {
        let carriers = self.carriers.read().expect("no holder panics");
        carriers.get(carrier).cloned()
    }
}

#[async_trait]
impl CarrierReports for HttpReports {
    async fn take(
        &self,
        carrier: &str,
        message: MessageId,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult {
        match self.find(carrier) {
            Some(found) => found.take_report(message, proof, post).await,
            None => self.others.take(carrier, message, proof, post).await,
        }
    }

    async fn take_text(&self, carrier: &str, proof: &str, post: CarrierPost<'_>) -> ReportResult {
        match self.find(carrier) {
            Some(found) => found.take_text(proof, post).await,
            None => self.others.take_text(carrier, proof, post).await,
        }
    }
}
