//! The carriers, built from the configuration and rebuilt when it changes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::Clock;
use domain::ports::{Carrier, CarrierReports, HandsetSink, ReceiptSink, Store};
use engine::catalogue::prices::{Format, PriceList};
use engine::sending::polls::PolledMessages;
use engine::sending::published_rules::{NamedCarrier, PublishedRules};
use engine::sending::routing::CarrierFacts;
use engine::{CarrierHandle, Catalogues, Engine, Plan};
use outbound::http::{HttpPorts, PROOF_PURPOSE};
use outbound::simulator::{self, Simulator, SimulatorPorts, SimulatorSettings};
use outbound::smpp::SmppTls;
use outbound::{
    AbsentCarrier, HttpCarrier, HttpReports, SmppCarrier, SmppSettings, Upstream, UpstreamReports,
};
use tokio::sync::watch;

use crate::config::routes::{KnownCarrier, Route};
use crate::config::{Config, carriers as settings};
use crate::outside;
use crate::stored_plan::{PlanInForce, StoredPlan};

pub(crate) struct Carriers {
    engine: Arc<Engine>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The listening address: upstreams send their reports there, unless the configuration names another URL.
    listening: SocketAddr,
    upstream_reports: Arc<UpstreamReports>,
    http_reports: Arc<HttpReports>,
    /// The messages that carriers ask about.
    polls: Arc<PolledMessages>,
    running: Vec<RunningCarrier>,
    /// Carriers that the routing rules name and that this node does not have.
    absent: Vec<Arc<AbsentCarrier>>,
}

/// A carrier and the settings it was built from. It stays connected until they change.
#[derive(Clone)]
struct RunningCarrier {
    built_from: BuildSettings,
    carrier: Arc<dyn Carrier>,
    /// The same carrier, if it is an upstream.
    upstream: Option<Arc<Upstream>>,
    /// The same carrier, if it is one with an HTTP API of its own.
    http: Option<Arc<HttpCarrier>>,
}

#[derive(Clone, PartialEq)]
struct BuildSettings {
    settings: settings::Carrier,
    simulator: SimulatorSettings,
    base_url: String,
}

impl Carriers {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        listening: SocketAddr,
    ) -> Self {
        let upstream_reports = UpstreamReports::new();
        Self {
            http_reports: HttpReports::new(upstream_reports.clone()),
            upstream_reports,
            polls: PolledMessages::start(store.clone()),
            engine,
            store,
            clock,
            listening,
            running: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// The version of the published routing rules.
    pub(crate) fn routes(&self) -> watch::Receiver<u32> {
        self.engine.catalogues.routes()
    }

    /// The version of the carriers and routes in the database.
    pub(crate) fn plans(&self) -> watch::Receiver<u32> {
        self.engine.catalogues.plans()
    }

    /// Reads the newest carriers and routes in the database.
    pub(crate) async fn read_plan(&self) -> anyhow::Result<(u32, PlanInForce)> {
        let (version, plan) = StoredPlan::read(&self.engine.catalogues).await?;
        Ok((version, plan.load()?))
    }

    /// Accepts what carriers send by HTTP.
    pub(crate) fn reports(&self) -> Arc<dyn CarrierReports> {
        self.http_reports.clone()
    }

    fn accept_reports(&self, running: &[RunningCarrier]) {
        self.upstream_reports.set(upstreams(running));
        let http = running.iter().filter_map(|one| one.http.clone());
        self.http_reports.set(http);
    }

    /// Switches to the carriers of the configuration and of the database, and to their rules. On an error nothing is changed. A carrier with
    /// unchanged settings stays connected.
    pub(crate) async fn apply(
        &mut self,
        config: &Config,
        of_files: &PublishedRules<Route>,
        stored: &PlanInForce,
    ) -> anyhow::Result<()> {
        let configured = stored.carriers(config);
        let rules = &stored.rules(of_files);
        let absent: Vec<&NamedCarrier> = rules
            .carriers
            .iter()
            .filter(|named| {
                configured
                    .iter()
                    .all(|carrier| carrier.name() != named.name)
            })
            .collect();
        let plan = plan(rules, &configured, &absent, &self.engine.catalogues)?;
        let absent = self.placeholders(&absent);
        let mut running = Vec::new();
        let mut built = Vec::new();
        if let (Some(sink), Some(handsets)) = (self.engine.receipts(), self.engine.handsets()) {
            for settings in configured {
                let built_from = BuildSettings {
                    simulator: simulator_settings(config),
                    base_url: config.base_url(self.listening),
                    settings,
                };
                if let Some(same) = self.running.iter().find(|old| old.built_from == built_from) {
                    running.push(same.clone());
                    continue;
                }
                match self.build(built_from, sink.clone(), handsets.clone()) {
                    Ok(new) => {
                        built.push(new.carrier.clone());
                        running.push(new);
                    }
                    Err(error) => return Err(stop_built(built, error).await),
                }
            }
        }
        let present = running.iter().map(|running| CarrierHandle {
            carrier: running.carrier.clone(),
            kind: running.built_from.settings.kind().to_owned(),
        });
        let handles = present.chain(absent.iter().map(|carrier| CarrierHandle {
            carrier: carrier.clone(),
            kind: AbsentCarrier::KIND.to_owned(),
        }));
        // Before anything is sent by the new carriers. Reports about replaced carriers are still accepted.
        self.accept_reports(&running);
        if let Err(error) = self.engine.equip(plan, handles.collect()).await {
            self.accept_reports(&self.running);
            return Err(stop_built(built, error.into()).await);
        }
        self.running = running;
        self.absent = absent;
        Ok(())
    }

    /// Placeholders for carriers that this node does not have. Existing ones are reused, with their waiting messages.
    fn placeholders(&self, absent: &[&NamedCarrier]) -> Vec<Arc<AbsentCarrier>> {
        let placeholder = |named: &&NamedCarrier| {
            let before = self
                .absent
                .iter()
                .find(|absent| absent.name() == named.name);
            before
                .cloned()
                .unwrap_or_else(|| AbsentCarrier::new(&named.name))
        };
        absent.iter().map(placeholder).collect()
    }

    fn build(
        &self,
        built_from: BuildSettings,
        sink: Arc<dyn ReceiptSink>,
        handsets: Arc<dyn HandsetSink>,
    ) -> anyhow::Result<RunningCarrier> {
        let (mut upstream, mut http) = (None, None);
        let carrier: Arc<dyn Carrier> = match &built_from.settings {
            settings::Carrier::Simulator(_) => {
                let ports = SimulatorPorts {
                    clock: self.clock.clone(),
                    store: self.store.clone(),
                    sink,
                    handsets,
                    numbers: outside::number_locator(self.engine.catalogues.clone()),
                };
                Simulator::start(built_from.simulator.clone(), ports)
                    .context("simulator.journal cannot be opened")?
            }
            settings::Carrier::Upstream(settings) => {
                let settings = settings.settings(&built_from.base_url)?;
                let carrier = Upstream::start(settings, sink, handsets, self.clock.clone());
                upstream.insert(carrier).clone()
            }
            settings::Carrier::Http(settings) => {
                let keys = self.store.derived_keys(PROOF_PURPOSE);
                let settings = settings.settings(&built_from.base_url, keys)?;
                let ports = HttpPorts {
                    receipts: sink,
                    handsets,
                    numbers: outside::number_locator(self.engine.catalogues.clone()),
                    polls: self.polls.clone(),
                    clock: self.clock.clone(),
                };
                let carrier = HttpCarrier::start(settings, ports);
                http.insert(carrier).clone()
            }
            settings::Carrier::Smpp(settings) => {
                let settings = smpp_settings(settings)?;
                SmppCarrier::start(settings, sink, handsets, self.clock.clone())
            }
        };
        Ok(RunningCarrier {
            built_from,
            carrier,
            upstream,
            http,
        })
    }
}

fn upstreams(running: &[RunningCarrier]) -> Vec<Arc<Upstream>> {
    running
        .iter()
        .filter_map(|one| one.upstream.clone())
        .collect()
}

pub(crate) fn smpp_settings(carrier: &settings::SmppCarrier) -> anyhow::Result<SmppSettings> {
    let carrier = carrier.clone();
    let tls = match &carrier.tls_ca {
        None => SmppTls::default(),
        Some(path) => {
            let context = || format!("carrier '{}': tls_ca {}", carrier.name, path.display());
            let pem = std::fs::read(path).with_context(context)?;
            SmppTls::trusting(&pem)
                .map_err(anyhow::Error::msg)
                .with_context(context)?
        }
    };
    let seconds = Duration::from_secs;
    let late_answer_s = carrier.late_answer_s();
    Ok(SmppSettings {
        tls: carrier.tls.then_some(SmppTls {
            server_name: carrier.tls_name,
            ..tls
        }),
        system_type: carrier.system_type,
        service_type: carrier.service_type,
        bind: carrier.bind,
        binds: carrier.binds,
        window: carrier.window,
        max_per_second: carrier.max_per_second,
        response_timeout: seconds(carrier.response_timeout_s),
        late_answer: seconds(late_answer_s),
        unknown_tries: carrier.unknown_tries,
        enquire_every: seconds(carrier.enquire_every_s),
        source: carrier.source,
        gsm7: carrier.gsm7,
        ucs2_coding: carrier.ucs2_coding,
        long_text: carrier.long,
        source_ton: carrier.source_ton,
        source_npi: carrier.source_npi,
        dest_ton: carrier.dest_ton,
        dest_npi: carrier.dest_npi,
        validity: carrier.validity,
        registered_delivery: carrier.registered_delivery,
        answer_ids: carrier.answer_id,
        receipt_ids: carrier.receipt_id,
        match_recipient: carrier.match_recipient,
        unmarked_receipts: carrier.unmarked_receipts,
        ..SmppSettings::new(
            carrier.name,
            carrier.address,
            carrier.system_id,
            carrier.password.0,
        )
    })
}

/// Stops the carriers that were built for a configuration that cannot be applied.
async fn stop_built(built: Vec<Arc<dyn Carrier>>, error: anyhow::Error) -> anyhow::Error {
    for carrier in built {
        carrier.stop().await;
    }
    error
}

fn simulator_settings(config: &Config) -> SimulatorSettings {
    let settings = &config.simulator;
    SimulatorSettings {
        delay: Duration::from_millis(settings.delay_ms),
        window: settings.window,
        journal: settings.journal.clone(),
    }
}

fn plan(
    rules: &PublishedRules<Route>,
    configured: &[settings::Carrier],
    absent: &[&NamedCarrier],
    catalogues: &Catalogues,
) -> anyhow::Result<Plan> {
    let facts = |carrier: &settings::Carrier| {
        let costs = carrier.costs().map(|path| read_costs(path, catalogues));
        Ok(CarrierFacts {
            name: carrier.name().to_owned(),
            channels: carrier.channels(),
            costs: costs.transpose()?.map(Arc::new),
            is_simulated: matches!(carrier, settings::Carrier::Simulator(_)),
        })
    };
    // The node that published the rules has checked the costs; this node may not have them.
    let known = |name| KnownCarrier {
        name,
        has_costs: true,
    };
    let present = configured.iter().map(|carrier| known(carrier.name()));
    let names: Vec<_> = present
        .chain(absent.iter().map(|named| known(&named.name)))
        .collect();
    let rules = rules.routes.iter().map(|route| route.rule(&names));
    let absent_facts = absent.iter().map(|named| {
        Ok(CarrierFacts {
            name: named.name.clone(),
            channels: named.channels(),
            costs: None,
            is_simulated: named.name == simulator::NAME,
        })
    });
    let carriers = configured.iter().map(facts).chain(absent_facts);
    Ok(Plan {
        carriers: carriers.collect::<anyhow::Result<_>>()?,
        rules: rules.collect::<anyhow::Result<_>>()?,
    })
}

/// Reads a cost list, which has the format of a price list.
fn read_costs(path: &Path, catalogues: &Catalogues) -> anyhow::Result<PriceList> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("carrier.costs: cannot read {file}"))?;
    let is_json = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let format = if is_json { Format::Json } else { Format::Csv };
    PriceList::read(&text, format, &catalogues.live().reference).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "carrier.costs: {file} is not a cost list:\n  {}",
            problems.join("\n  ")
        )
    })
}
