//! `[[carrier]] kind = "http"`: a provider with an HTTP API of its own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use domain::Channel;
use domain::encryption::KEY_BYTES;
use outbound::HttpProxy;
use outbound::dial::{TlsConfig, public_roots, public_roots_and};
use outbound::http::{
    BatchRules, CodeTable, HttpSettings, InboundRecipient, InboundRules, LookupRules, NetworkRules,
    Pointer, PollRules, ReportRules, RequestRules, ResponseRules, RuleError, Secrets,
    SignatureRules, Statuses, Template,
};
use serde::{Deserialize, Serialize};
use url::Url;

use super::super::secret::Secret;
use super::http_tables::{
    HttpBatch, HttpInbound, HttpLookup, HttpPoll, HttpReport, HttpRequest, HttpResponse,
    HttpSignature, to_json,
};
use super::{check_rate, check_window};

/// The most attempts without an answer.
const MAX_UNKNOWN_TRIES: u32 = 100;
/// The longest time to wait for an answer.
const MAX_TIMEOUT_S: u64 = 300;
/// The most messages in one request: the answer must not be longer than the service reads.
const MAX_BATCH: usize = 100;
const MIN_POLL_INTERVAL_S: u64 = 1;
const MAX_POLL_INTERVAL_S: u64 = 3600;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpCarrier {
    pub(crate) name: String,
    /// Whose description this one completes; see [`crate::config::presets`].
    pub(crate) preset: Option<String>,
    #[serde(default = "default_channels")]
    channels: Vec<String>,
    base_url: Option<Url>,
    report_url: Option<Url>,
    #[serde(default = "default_window")]
    window: usize,
    max_per_second: Option<u32>,
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    #[serde(default = "default_unknown_tries")]
    unknown_tries: u32,
    tls_ca: Option<PathBuf>,
    proxy: Option<Secret>,
    source: Option<IpAddr>,
    pub(crate) costs: Option<PathBuf>,
    request: HttpRequest,
    #[serde(default)]
    secret: BTreeMap<String, Secret>,
    #[serde(default)]
    response: HttpResponse,
    report: Option<HttpReport>,
    inbound: Option<HttpInbound>,
    lookup: Option<HttpLookup>,
    poll: Option<HttpPoll>,
    batch: Option<HttpBatch>,
    signature: Option<HttpSignature>,
}

fn default_channels() -> Vec<String> {
    vec![Channel::Sms.name().to_owned()]
}

fn default_window() -> usize {
    50
}

fn default_timeout_s() -> u64 {
    10
}

fn default_unknown_tries() -> u32 {
    2
}

impl HttpCarrier {
    /// The channels that exist; others are a mistake.
    pub(crate) fn channels(&self) -> Vec<Channel> {
        let channels = self.channels.iter();
        channels.filter_map(|name| name.parse().ok()).collect()
    }

    pub(super) fn resolve_secrets(&mut self) -> anyhow::Result<()> {
        let name = &self.name;
        for (key, secret) in &mut self.secret {
            secret.resolve(&format!("carrier '{name}': secret.{key}"))?;
        }
        match &mut self.proxy {
            Some(proxy) => proxy.resolve(&format!("carrier '{name}': proxy")),
            None => Ok(()),
        }
    }

    /// Everything that is wrong.
    pub(super) fn mistakes(&self) -> Vec<anyhow::Error> {
        let secrets = self.secrets();
        let checks = [
            self.check_channels(),
            self.check_urls(),
            self.check_numbers(),
            self.check_tables(),
            self.http_proxy().map(drop),
            self.response_rules().map(drop).map_err(Into::into),
            self.report_rules().map(drop).map_err(Into::into),
            self.inbound_rules().map(drop).map_err(Into::into),
            self.lookup_rules().map(drop).map_err(Into::into),
            self.signature_rules(&secrets).map(drop),
            self.poll_rules(&secrets).map(drop),
            self.batch_rules().map(drop),
        ];
        let request = self.check_request(&secrets);
        let all = checks.into_iter().chain([request]);
        all.filter_map(Result::err).collect()
    }

    fn check_channels(&self) -> anyhow::Result<()> {
        ensure!(
            !self.channels.is_empty(),
            "channels is empty; give sms, viber or hlr"
        );
        for name in &self.channels {
            name.parse::<Channel>().context("channels")?;
        }
        Ok(())
    }

    fn check_urls(&self) -> anyhow::Result<()> {
        for (key, url) in [
            ("base_url", self.base_url.as_ref()),
            ("report_url", self.report_url.as_ref()),
        ] {
            let is_plain = |url: &Url| {
                let is_web = matches!(url.scheme(), "http" | "https");
                let has_user = !url.username().is_empty() || url.password().is_some();
                is_web && !has_user && url.query().is_none() && url.fragment().is_none()
            };
            ensure!(
                url.is_none_or(is_plain),
                "{key} must be an http or https address without user, password, query or fragment"
            );
        }
        Ok(())
    }

    fn check_numbers(&self) -> anyhow::Result<()> {
        check_window(self.window)?;
        check_rate(self.max_per_second)?;
        ensure!(
            (1..=MAX_TIMEOUT_S).contains(&self.timeout_s),
            "timeout_s is {}; give 1 to {MAX_TIMEOUT_S}",
            self.timeout_s
        );
        ensure!(
            (1..=MAX_UNKNOWN_TRIES).contains(&self.unknown_tries),
            "unknown_tries is {}; give 1 to {MAX_UNKNOWN_TRIES}",
            self.unknown_tries
        );
        Ok(())
    }

    /// Tables that others need.
    fn check_tables(&self) -> anyhow::Result<()> {
        let has = |channel| self.channels().contains(&channel);
        ensure!(
            !has(Channel::Hlr) || self.lookup.is_some(),
            "channels has hlr, but lookup is not set; it says where the result of a lookup is"
        );
        ensure!(
            has(Channel::Hlr) || self.lookup.is_none(),
            "lookup is set, but channels does not have hlr"
        );
        Ok(())
    }

    fn check_request(&self, secrets: &Secrets) -> anyhow::Result<()> {
        let request = self.request_rules(secrets)?;
        let Some(report) = &self.report else {
            return Ok(());
        };
        if report.shared {
            let has_list = self.inbound.as_ref().is_some_and(|it| it.list.is_some());
            ensure!(
                report.list.is_none() && !has_list,
                "report.shared cannot be set together with report.list or inbound.list"
            );
            ensure!(
                self.inbound.is_some() && report.id.is_some() && request.has_id(),
                "report.shared needs inbound, report.id and {{{{ id }}}} in request: reports come to the inbound address \
                 and name the message by that ID"
            );
            return Ok(());
        }
        ensure!(
            request.has_report_url() || self.poll.is_some(),
            "report is set, but no part of request has {{{{ report_url }}}}, so the provider does not know where to \
             send reports, and poll is not set"
        );
        Ok(())
    }

    fn secrets(&self) -> Secrets {
        let secrets = self.secret.iter();
        secrets
            .map(|(name, secret)| (name.clone(), secret.0.clone()))
            .collect()
    }

    fn request_rules(&self, secrets: &Secrets) -> Result<RequestRules, RuleError> {
        let mut description = self.request.description("POST");
        description.item = self.batch.as_ref().map(|batch| to_json(&batch.item));
        RequestRules::parse(&description, self.base_url.as_ref(), secrets)
    }

    fn poll_rules(&self, secrets: &Secrets) -> anyhow::Result<Option<PollRules>> {
        let Some(poll) = &self.poll else {
            return Ok(None);
        };
        ensure!(
            (MIN_POLL_INTERVAL_S..=MAX_POLL_INTERVAL_S).contains(&poll.interval_s),
            "poll.interval_s is {}; give {MIN_POLL_INTERVAL_S} to {MAX_POLL_INTERVAL_S}",
            poll.interval_s
        );
        ensure!(
            self.report.is_some() || self.lookup.is_some(),
            "poll is set, but report is not; it says what the answers mean"
        );
        let description = poll.request.description("GET");
        let request = RequestRules::parse_poll(&description, self.base_url.as_ref(), secrets)?;
        let response = &self.response;
        ensure!(
            !request.has_provider_id()
                || response.id.is_some()
                || response.id_after.is_some()
                || self.batch.as_ref().is_some_and(|batch| batch.id.is_some()),
            "poll.request has {{{{ provider_id }}}}, but neither response.id nor response.id_after says where it is"
        );
        Ok(Some(PollRules {
            request,
            interval: Duration::from_secs(poll.interval_s),
        }))
    }

    fn batch_rules(&self) -> anyhow::Result<Option<BatchRules>> {
        let Some(batch) = &self.batch else {
            return Ok(None);
        };
        ensure!(
            (2..=MAX_BATCH).contains(&batch.size),
            "batch.size is {}; give 2 to {MAX_BATCH}",
            batch.size
        );
        ensure!(
            batch.size <= self.window,
            "batch.size is {}, but window is only {}; the messages of a batch are in flight together",
            batch.size,
            self.window
        );
        ensure!(
            self.lookup.is_none(),
            "batch is set, but lookups are asked one by one; give them a carrier of their own"
        );
        Ok(Some(BatchRules {
            size: batch.size,
            results: Pointer::parse("batch.results", &batch.results)?,
            to: pointer("batch.to", batch.to.as_ref())?,
            id: pointer("batch.id", batch.id.as_ref())?,
            state: pointer("batch.state", batch.state.as_ref())?,
            error: pointer("batch.error", batch.error.as_ref())?,
        }))
    }

    fn response_rules(&self) -> Result<ResponseRules, RuleError> {
        let response = &self.response;
        let in_batch = self.batch.as_ref().and_then(|batch| batch.state.as_ref());
        let state = response.state.as_ref().or(in_batch);
        if state.is_none() && !response.refused.is_empty() {
            let problem = "needs response.state, which says where the state is";
            return Err(RuleError::new("response.refused", problem));
        }
        Ok(ResponseRules {
            taken: Statuses::parse("response.taken", &response.taken)?,
            later: Statuses::parse("response.later", &response.later)?,
            id: pointer("response.id", response.id.as_ref())?,
            id_after: text("response.id_after", response.id_after.as_ref())?,
            state: pointer("response.state", response.state.as_ref())?,
            refused: response.refused.clone(),
            refused_text: response
                .refused_text
                .iter()
                .map(|start| non_empty("response.refused_text", start))
                .collect::<Result<_, _>>()?,
            error: pointer("response.error", response.error.as_ref())?,
            error_after: text("response.error_after", response.error_after.as_ref())?,
            errors: CodeTable::parse("response.errors", &response.errors)?,
        })
    }

    fn report_rules(&self) -> Result<Option<ReportRules>, RuleError> {
        let Some(report) = &self.report else {
            return Ok(None);
        };
        Ok(Some(ReportRules {
            id: pointer("report.id", report.id.as_ref())?,
            state: Pointer::parse("report.state", &report.state)?,
            delivered: report.delivered.clone(),
            failed: report.failed.clone(),
            expired: report.expired.clone(),
            seen: report.seen.clone(),
            error: pointer("report.error", report.error.as_ref())?,
            errors: CodeTable::parse("report.errors", &report.errors)?,
            network: network_rules(
                "report",
                report.network.as_ref(),
                [report.mcc.as_ref(), report.mnc.as_ref()],
            )?,
            is_shared: report.shared,
            list: pointer("report.list", report.list.as_ref())?,
        }))
    }

    fn inbound_rules(&self) -> Result<Option<InboundRules>, RuleError> {
        let Some(inbound) = &self.inbound else {
            return Ok(None);
        };
        if inbound.list.is_some() && inbound.id.is_none() {
            let problem = "needs inbound.id, by which texts of a repeated request are recognised";
            return Err(RuleError::new("inbound.list", problem));
        }
        Ok(Some(InboundRules {
            list: pointer("inbound.list", inbound.list.as_ref())?,
            from: Pointer::parse("inbound.from", &inbound.from)?,
            to: InboundRecipient::parse("inbound.to", &inbound.to)?,
            text: Pointer::parse("inbound.text", &inbound.text)?,
            id: pointer("inbound.id", inbound.id.as_ref())?,
        }))
    }

    fn lookup_rules(&self) -> Result<Option<LookupRules>, RuleError> {
        let Some(lookup) = &self.lookup else {
            return Ok(None);
        };
        // The API has no field for it, but a mistake in it is still one.
        pointer("lookup.roaming", lookup.roaming.as_ref())?;
        Ok(Some(LookupRules {
            present: Pointer::parse("lookup.present", &lookup.present)?,
            present_values: lookup.present_values.clone(),
            ported: pointer("lookup.ported", lookup.ported.as_ref())?,
            network: network_rules(
                "lookup",
                lookup.network.as_ref(),
                [lookup.mcc.as_ref(), lookup.mnc.as_ref()],
            )?,
            original_network: pointer("lookup.original_network", lookup.original_network.as_ref())?,
            error: pointer("lookup.error", lookup.error.as_ref())?,
            errors: CodeTable::parse("lookup.errors", &lookup.errors)?,
            other_error: lookup
                .other_error
                .map(|ours| CodeTable::parse_code("lookup.other_error", ours))
                .transpose()?,
        }))
    }

    fn signature_rules(&self, secrets: &Secrets) -> anyhow::Result<Option<SignatureRules>> {
        let Some(signature) = &self.signature else {
            return Ok(None);
        };
        let key = Template::parse(&signature.key, secrets).context("signature.key")?;
        let key = key.fixed_text().filter(|key| !key.is_empty());
        let rules = SignatureRules {
            scheme: signature.signature_scheme()?,
            key: key.ok_or_else(|| {
                anyhow!("signature.key must be a secret, such as {{{{ secret.key }}}}")
            })?,
        };
        ensure!(
            rules.has_valid_key(),
            "signature.key is not a public key of the provider: 32 bytes in Base64"
        );
        Ok(Some(rules))
    }

    fn http_proxy(&self) -> anyhow::Result<Option<HttpProxy>> {
        let proxy = self.proxy.as_ref().map(|url| HttpProxy::parse(&url.0));
        let proxy = proxy.transpose().map_err(anyhow::Error::msg);
        proxy.context("proxy is no address of a proxy")
    }

    fn trusted(&self) -> anyhow::Result<Arc<TlsConfig>> {
        let Some(path) = &self.tls_ca else {
            return Ok(public_roots());
        };
        let context = || format!("tls_ca {}", path.display());
        let pem = std::fs::read(path).with_context(context)?;
        public_roots_and(&pem)
            .map_err(anyhow::Error::msg)
            .with_context(context)
    }

    /// The address at which the provider reaches this service.
    pub(crate) fn reached_at(&self, base_url: &str) -> anyhow::Result<Url> {
        match &self.report_url {
            Some(url) => Ok(url.clone()),
            None => Url::parse(base_url).context("report_url"),
        }
    }

    pub(crate) const fn has_inbound(&self) -> bool {
        self.inbound.is_some()
    }

    /// The carrier's settings. `base_url` is where this service is reached unless `report_url` says otherwise.
    pub(crate) fn settings(
        &self,
        base_url: &str,
        proof_keys: Vec<[u8; KEY_BYTES]>,
    ) -> anyhow::Result<HttpSettings> {
        let settings = || -> anyhow::Result<HttpSettings> {
            let secrets = self.secrets();
            Ok(HttpSettings {
                name: self.name.clone(),
                channels: self.channels(),
                request: self.request_rules(&secrets)?,
                response: self.response_rules()?,
                batch: self.batch_rules()?,
                report: self.report_rules()?,
                inbound: self.inbound_rules()?,
                lookup: self.lookup_rules()?,
                poll: self.poll_rules(&secrets)?,
                signature: self.signature_rules(&secrets)?,
                report_url: self.reached_at(base_url)?,
                proof_keys,
                window: self.window,
                max_per_second: self.max_per_second,
                timeout: Duration::from_secs(self.timeout_s),
                unknown_tries: self.unknown_tries,
                tls: self.trusted()?,
                proxy: self.http_proxy()?,
                source: self.source,
            })
        };
        settings().with_context(|| format!("carrier '{}'", self.name))
    }
}

/// Where a network is: in one value, or MCC and MNC apart.
fn network_rules(
    table: &str,
    network: Option<&String>,
    [mcc, mnc]: [Option<&String>; 2],
) -> Result<NetworkRules, RuleError> {
    let parse = |key: &str, text: &str| Pointer::parse(&format!("{table}.{key}"), text);
    match (network, mcc, mnc) {
        (None, None, None) => Ok(NetworkRules::Unknown),
        (Some(network), None, None) => parse("network", network).map(NetworkRules::Whole),
        (None, Some(mcc), Some(mnc)) => Ok(NetworkRules::Apart {
            mcc: parse("mcc", mcc)?,
            mnc: parse("mnc", mnc)?,
        }),
        _ => Err(RuleError::new(
            format!("{table}.network"),
            "give either network, or both mcc and mnc",
        )),
    }
}

/// A text that is searched for, so it must not be empty.
fn non_empty(key: &str, text: &str) -> Result<String, RuleError> {
    if text.trim().is_empty() {
        return Err(RuleError::new(key, "is empty; give the text to look for"));
    }
    Ok(text.to_owned())
}

fn text(key: &str, text: Option<&String>) -> Result<Option<String>, RuleError> {
    text.map(|text| non_empty(key, text)).transpose()
}

fn pointer(key: &str, text: Option<&String>) -> Result<Option<Pointer>, RuleError> {
    text.map(|text| Pointer::parse(key, text)).transpose()
}
