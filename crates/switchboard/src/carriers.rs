//! The carriers, built from the configuration, and built anew when it changes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::Clock;
use domain::ports::{Carrier, CarrierReports, ReceiptSink, Store};
use engine::prices::{Format, PriceList};
use engine::routing::CarrierFacts;
use engine::{Catalogues, Engine, Equipment, Plan};
use outbound::simulator::{Simulator, SimulatorSettings, Surroundings};
use outbound::{Upstream, UpstreamReports, UpstreamSettings};

use crate::config::{Config, carriers as settings};
use crate::outside;

/// The carriers of a process.
pub(crate) struct Carriers {
    engine: Arc<Engine>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Where this service is reached, when nothing else is said.
    base_url: String,
    reports: Arc<UpstreamReports>,
    running: Vec<Running>,
}

/// A carrier with all that it was built from: as long as that is the same, so is the carrier.
#[derive(Clone)]
struct Running {
    made_of: MadeOf,
    carrier: Arc<dyn Carrier>,
    /// The same, when it brings its reports by HTTP.
    upstream: Option<Arc<Upstream>>,
}

#[derive(Clone, PartialEq)]
struct MadeOf {
    settings: settings::Carrier,
    simulator: SimulatorSettings,
}

impl Carriers {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        base_url: String,
    ) -> Self {
        Self {
            engine,
            store,
            clock,
            base_url,
            reports: UpstreamReports::new(),
            running: Vec::new(),
        }
    }

    /// Where carriers bring reports by HTTP.
    pub(crate) fn reports(&self) -> Arc<dyn CarrierReports> {
        self.reports.clone()
    }

    /// Goes over to what the configuration says. Nothing is changed where it cannot be followed as a whole; a carrier
    /// whose settings are the same stays connected.
    pub(crate) async fn apply(&mut self, config: &Config) -> anyhow::Result<()> {
        let configured = config.carriers();
        let plan = plan(config, &configured, &self.engine.catalogues)?;
        let mut running = Vec::new();
        let mut built = Vec::new();
        if let Some(sink) = self.engine.receipts() {
            for settings in configured {
                let made_of = MadeOf {
                    simulator: simulator_settings(config),
                    settings,
                };
                if let Some(same) = self.running.iter().find(|old| old.made_of == made_of) {
                    running.push(same.clone());
                    continue;
                }
                match self.build(made_of, sink.clone()) {
                    Ok(new) => {
                        built.push(new.carrier.clone());
                        running.push(new);
                    }
                    Err(error) => return Err(abandon(built, error).await),
                }
            }
        }
        let equipment = running.iter().map(|running| Equipment {
            carrier: running.carrier.clone(),
            kind: running.made_of.settings.kind().to_owned(),
        });
        if let Err(error) = self.engine.equip(plan, equipment.collect()).await {
            return Err(abandon(built, error.into()).await);
        }
        let upstreams = running
            .iter()
            .filter_map(|running| running.upstream.clone());
        self.reports.set(upstreams.collect());
        self.running = running;
        Ok(())
    }

    fn build(&self, made_of: MadeOf, sink: Arc<dyn ReceiptSink>) -> anyhow::Result<Running> {
        let mut upstream = None;
        let carrier: Arc<dyn Carrier> = match &made_of.settings {
            settings::Carrier::Simulator(_) => {
                let surroundings = Surroundings {
                    clock: self.clock.clone(),
                    store: self.store.clone(),
                    sink,
                    book: outside::number_book(self.engine.catalogues.clone()),
                };
                Simulator::start(made_of.simulator.clone(), surroundings)
                    .context("simulator.journal cannot be opened")?
            }
            settings::Carrier::Upstream(settings) => {
                let settings = upstream_settings(settings, &self.base_url)?;
                let started = Upstream::start(settings, sink, self.clock.clone());
                upstream = Some(started.clone());
                started
            }
            settings::Carrier::Smpp(_) => {
                anyhow::bail!("this kind of carrier is not there yet")
            }
        };
        Ok(Running {
            made_of,
            carrier,
            upstream,
        })
    }
}

/// Stops what was built for a configuration that cannot be followed.
async fn abandon(built: Vec<Arc<dyn Carrier>>, error: anyhow::Error) -> anyhow::Error {
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

fn upstream_settings(
    settings: &settings::UpstreamCarrier,
    base_url: &str,
) -> anyhow::Result<UpstreamSettings> {
    let name = &settings.name;
    let report_url = match &settings.report_url {
        Some(url) => url.clone(),
        None => base_url.parse().with_context(|| {
            format!("carrier '{name}': report_url is not set, and '{base_url}' is no address")
        })?,
    };
    let upstream = UpstreamSettings {
        name: name.clone(),
        url: settings.url.clone(),
        token: settings.token.0.clone(),
        header: settings
            .header
            .parse()
            .with_context(|| format!("carrier '{name}': header"))?,
        report_url,
        window: settings.window,
        max_per_second: settings.max_per_second,
        timeout: Duration::from_secs(settings.timeout_s),
    };
    upstream
        .check()
        .with_context(|| format!("carrier '{name}'"))?;
    Ok(upstream)
}

/// What routing goes by.
fn plan(
    config: &Config,
    configured: &[settings::Carrier],
    catalogues: &Catalogues,
) -> anyhow::Result<Plan> {
    let facts = |carrier: &settings::Carrier| {
        let costs = carrier.costs().map(|path| read_costs(path, catalogues));
        Ok(CarrierFacts {
            name: carrier.name().to_owned(),
            channels: carrier.channels(),
            costs: costs.transpose()?.map(Arc::new),
        })
    };
    let rules = config.routes.iter().map(|route| route.rule(configured));
    Ok(Plan {
        carriers: configured
            .iter()
            .map(facts)
            .collect::<anyhow::Result<_>>()?,
        rules: rules.collect::<anyhow::Result<_>>()?,
    })
}

/// Reads a cost list, which looks like a price list.
fn read_costs(path: &Path, catalogues: &Catalogues) -> anyhow::Result<PriceList> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("carrier.costs: cannot read {shown}"))?;
    let is_json = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let format = if is_json { Format::Json } else { Format::Csv };
    PriceList::read(&text, format, &catalogues.live().reference).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "carrier.costs: {shown} is no cost list:\n  {}",
            problems.join("\n  ")
        )
    })
}
