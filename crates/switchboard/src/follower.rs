//! Following changes of carriers and rules while the service runs.

use std::sync::Arc;

use anyhow::Context as _;
use domain::ports::{CarrierReports, Store};
use engine::Engine;
use engine::sending::published_rules::{NamedCarrier, Nodes, PublishedRules, RulesInForce};
use store::DatabaseUrl;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::carriers::Carriers;
use crate::cli::ConfigPaths;
use crate::config::routes::Route;
use crate::config::{self, Config};
use crate::service_manager::ServiceManager;
use crate::stored_plan::PlanInForce;

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
                Ok(()) = plans.changed() => {
                    if let Err(error) = self.follow_plan().await {
                        tracing::error!(
                            error = format!("{error:#}"),
                            "the carriers and routes in the database cannot be followed; they stay as they were"
                        );
                    }
                }
                Ok(()) = published.changed() => {
                    if let Err(error) = self.follow().await {
                        tracing::error!(
                            error = format!("{error:#}"),
                            "the rules that another node published cannot be followed; they stay as they were"
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
