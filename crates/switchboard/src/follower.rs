//! Following changes of carriers and rules while the service runs.

use std::sync::Arc;

use anyhow::Context as _;
use domain::ports::{CarrierReports, Store};
use engine::Engine;
use engine::sending::published_rules::{NamedCarrier, Nodes, PublishedRules, RulesInForce};
use store::DatabaseUrl;
use tokio::signal::unix::Signal;

use crate::carriers::Carriers;
use crate::cli::ConfigPaths;
use crate::config::routes::Route;
use crate::config::{self, Config};
use crate::service_manager::ServiceManager;

/// Goes over to changed carriers and rules while the service runs.
pub(crate) struct Follower<'a> {
    paths: &'a ConfigPaths,
    config: Config,
    carriers: Carriers,
    rules: RulesInForce<Route>,
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
        carriers.apply(&config, rules.rules()).await?;
        if is_news {
            rules.publish(own).await?;
        }
        Ok(Self {
            paths,
            config,
            carriers,
            rules,
        })
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
            self.carriers.apply(&config, self.rules.rules()).await?;
            self.config = config;
            return Err(older).context("carriers are as the file says; routes stay as they were");
        }
        self.carriers.apply(&config, &own).await?;
        self.config = config;
        let published = self.rules.publish(own).await;
        published.context("the rules are in force here, but could not be published; try again")
    }

    async fn follow(&mut self) -> anyhow::Result<()> {
        let Some((version, published)) = self.rules.find_newer().await? else {
            return Ok(());
        };
        self.carriers.apply(&self.config, &published).await?;
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
