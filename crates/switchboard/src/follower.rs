//! Following changes of carriers and rules while the service runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::ports::{CarrierReports, Store};
use engine::Engine;
use engine::sending::published_rules::{NamedCarrier, Nodes, PublishedRules, RulesInForce};
use store::DatabaseUrl;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::carriers::Carriers;
use crate::cli::ConfigPaths;
use crate::config::routes::Route;
use crate::config::{self, Config};
use crate::service_manager::ServiceManager;
use crate::stored_plan::PlanInForce;

/// The pause before a failed change is followed again; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Goes over to changed carriers and rules while the service runs.
pub(crate) struct Follower<'a> {
    paths: &'a ConfigPaths,
    config: Arc<Config>,
    /// Tells others about the configuration in force.
    in_force: watch::Sender<Arc<Config>>,
    carriers: Carriers,
    rules: RulesInForce<Route>,
    /// The carriers and routes of the database.
    plan: PlanInForce,
    plan_version: u32,
}

impl<'a> Follower<'a> {
    /// Starts with the carriers of the configuration, and with the rules of its file or those that are in force.
    pub(crate) async fn start(
        engine: &Arc<Engine>,
        store: &dyn Store,
        paths: &'a ConfigPaths,
        config: Config,
        mut carriers: Carriers,
    ) -> anyhow::Result<Self> {
        let own = own_rules(&config);
        let catalogues = engine.catalogues.clone();
        let nodes = find_nodes(engine, store, &config).await?;
        let (mut rules, is_news) = RulesInForce::find(catalogues, nodes, own.clone()).await?;
        let (plan_version, plan) = carriers.read_plan().await?;
        carriers.apply(&config, rules.rules(), &plan).await?;
        if is_news {
            rules.publish(own).await?;
        }
        let config = Arc::new(config);
        Ok(Self {
            paths,
            in_force: watch::Sender::new(config.clone()),
            config,
            carriers,
            rules,
            plan,
            plan_version,
        })
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.in_force.subscribe()
    }

    /// Takes in what carriers send by HTTP.
    pub(crate) fn reports(&self) -> Arc<dyn CarrierReports> {
        self.carriers.reports()
    }

    /// Follows what other nodes publish, and reads its own file whenever somebody asks for it.
    pub(crate) async fn run(&mut self, mut asked: Signal, manager: &ServiceManager) {
        let mut published = self.carriers.routes();
        // Something may have been published since this node chose what to start with.
        published.mark_changed();
        let mut plans = self.carriers.plans();
        plans.mark_changed();
        let (mut plan_retry, mut rules_retry) = (Retry::default(), Retry::default());
        loop {
            tokio::select! {
                signal = asked.recv() => {
                    if signal.is_none() {
                        return;
                    }
                    manager.reloading();
                    match self.reload().await {
                        Ok(()) => {
                            tracing::info!("carriers and routes are as the configuration says now");
                            manager.ready("the configuration was reloaded");
                        }
                        Err(error) => {
                            tracing::error!(
                                error = format!("{error:#}"),
                                "the configuration cannot be followed; carriers and routes stay as they were"
                            );
                            manager.ready("the last reload failed; the log says why");
                        }
                    }
                }
                () = plan_retry.due() => plans.mark_changed(),
                () = rules_retry.due() => published.mark_changed(),
                Ok(()) = plans.changed() => {
                    let followed = self.follow_plan().await;
                    plan_retry.record(&followed);
                    if let Err(error) = followed {
                        tracing::error!(
                            error = format!("{error:#}"),
                            "the carriers and routes in the database cannot be followed; they stay as they were; trying again"
                        );
                    }
                }
                Ok(()) = published.changed() => {
                    let followed = self.follow().await;
                    rules_retry.record(&followed);
                    if let Err(error) = followed {
                        tracing::error!(
                            error = format!("{error:#}"),
                            "the rules that another node published cannot be followed; they stay as they were; trying again"
                        );
                    }
                }
            }
        }
    }

    async fn reload(&mut self) -> anyhow::Result<()> {
        let config = config::load(self.paths)?;
        let own = own_rules(&config);
        if let Err(older) = self.rules.check_newer(&own) {
            let rules = self.rules.rules();
            self.carriers.apply(&config, rules, &self.plan).await?;
            self.set_config(config);
            return Err(older).context("carriers are as the file says; routes stay as they were");
        }
        self.carriers.apply(&config, &own, &self.plan).await?;
        self.set_config(config);
        let published = self.rules.publish(own).await;
        published.context("the rules are in force here, but could not be published; try again")
    }

    fn set_config(&mut self, config: Config) {
        self.config = Arc::new(config);
        self.in_force.send_replace(self.config.clone());
    }

    async fn follow_plan(&mut self) -> anyhow::Result<()> {
        let (version, plan) = self.carriers.read_plan().await?;
        if version == self.plan_version {
            return Ok(());
        }
        let rules = self.rules.rules();
        self.carriers.apply(&self.config, rules, &plan).await?;
        (self.plan, self.plan_version) = (plan, version);
        tracing::info!(version, "following the carriers and routes in the database");
        Ok(())
    }

    async fn follow(&mut self) -> anyhow::Result<()> {
        let Some((version, published)) = self.rules.find_newer().await? else {
            return Ok(());
        };
        let (config, plan) = (&*self.config, &self.plan);
        self.carriers.apply(config, &published, plan).await?;
        self.rules.follow(version, published);
        tracing::info!(version, "following the rules that another node published");
        Ok(())
    }
}

/// When a change that could not be followed is tried again: nothing announces it a second time.
#[derive(Default)]
struct Retry {
    failures: u32,
    at: Option<Instant>,
}

impl Retry {
    fn record(&mut self, followed: &anyhow::Result<()>) {
        if followed.is_ok() {
            *self = Self::default();
            return;
        }
        let pause = FIRST_PAUSE * (1 << self.failures.min(5));
        self.failures = self.failures.saturating_add(1);
        self.at = Some(Instant::now() + pause.min(LONGEST_PAUSE));
    }

    /// Returns once when it is time to try again. Never, if nothing failed.
    async fn due(&mut self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.at = None;
    }
}

async fn find_nodes(engine: &Engine, store: &dyn Store, config: &Config) -> anyhow::Result<Nodes> {
    if matches!(config.database_url()?, DatabaseUrl::Sqlite(_)) {
        return Ok(Nodes::Single);
    }
    let nodes = store.list_nodes().await?;
    let others_run = nodes
        .iter()
        .any(|node| node.node != engine.node() && !node.is_dead);
    Ok(if others_run {
        Nodes::OthersRun
    } else {
        Nodes::OthersStopped
    })
}

/// The rules of this node's file.
fn own_rules(config: &Config) -> PublishedRules<Route> {
    let is_named = |name: &str| {
        let mut named = config.routes.iter().flat_map(|route| &route.carriers);
        named.any(|other| other == name)
    };
    let carriers = config.carriers();
    let named = carriers.iter().filter(|carrier| is_named(carrier.name()));
    let named = named.map(|carrier| NamedCarrier::new(carrier.name(), &carrier.channels()));
    PublishedRules::new(
        config.routing.revision,
        named.collect(),
        config.routes.clone(),
    )
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_is_tried_until_it_is_followed() {
        let mut retry = Retry::default();
        let failed = || Err(anyhow::anyhow!("the database is away"));
        let day = Duration::from_hours(24);
        assert!(timeout(day, retry.due()).await.is_err(), "nothing failed");
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            retry.record(&failed());
            let began = Instant::now();
            // A future that is dropped loses nothing.
            assert!(timeout(Duration::ZERO, retry.due()).await.is_err());
            retry.due().await;
            let waited = began.elapsed().as_secs();
            assert_eq!(waited, seconds);
            assert!(timeout(day, retry.due()).await.is_err(), "once");
        }
        retry.record(&failed());
        retry.record(&Ok(()));
        assert!(timeout(day, retry.due()).await.is_err(), "it is followed");
        retry.record(&failed());
        let began = Instant::now();
        retry.due().await;
        assert_eq!(began.elapsed(), FIRST_PAUSE);
    }
}
