//! Settings of a carrier that is called by HTTP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::Channel;
use domain::encryption::KEY_BYTES;
use url::Url;

use super::batch::BatchRules;
use super::inbound::InboundRules;
use super::lookup::LookupRules;
use super::poll::PollRules;
use super::report::ReportRules;
use super::request::RequestRules;
use super::response::ResponseRules;
use super::signature::SignatureRules;
use crate::dial::{HttpProxy, TlsConfig};

/// The purpose of the keys of [`HttpSettings::proof_keys`].
pub const PROOF_PURPOSE: &str = "switchboard carrier proofs";

/// What a carrier is called with, and what its answers mean.
pub struct HttpSettings {
    pub name: String,
    pub channels: Vec<Channel>,
    pub request: RequestRules,
    pub response: ResponseRules,
    /// If several messages go in one request.
    pub batch: Option<BatchRules>,
    pub report: Option<ReportRules>,
    pub inbound: Option<InboundRules>,
    pub lookup: Option<LookupRules>,
    /// How the provider is asked for reports.
    pub poll: Option<PollRules>,
    /// How the provider signs what it sends.
    pub signature: Option<SignatureRules>,
    /// The base URL of this service, as the provider reaches it.
    pub report_url: Url,
    /// The keys of the URLs that the provider calls: the first one makes them, all of them are accepted.
    pub proof_keys: Vec<[u8; KEY_BYTES]>,
    /// How many parts may be in flight, which also limits the connections.
    pub window: usize,
    /// The maximum rate in parts a second.
    pub max_per_second: Option<u32>,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// How many attempts may end without an answer. Then the message is not sent again and waits for its report.
    pub unknown_tries: u32,
    /// The trusted certificates.
    pub tls: Arc<TlsConfig>,
    pub proxy: Option<HttpProxy>,
    /// The address to connect from.
    pub source: Option<IpAddr>,
}

/// Omits secrets.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("name", &self.name)
            .field("channels", &self.channels)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
