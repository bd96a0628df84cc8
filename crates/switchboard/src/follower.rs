//! Following changes of carriers and rules while the service runs.

use std::sync::Arc;

use anyhow::Context as _;
use domain::ports::Store;
use engine::Engine;
use engine::sending::published_rules::{NamedCarrier, PublishedRules, RulesInForce};
use jiff::Timestamp;
use outbound::UpstreamReports;
use tokio::signal::unix::Signal;

use crate::carriers::Carriers;
use crate::cli::ConfigPaths;
use crate::config::routes::Route;
use crate::config::{self, Config};

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
        let own = own_rules(&config, paths);
        let (catalogues, node) = (engine.catalogues.clone(), engine.node());
        let (mut rules, is_news) = RulesInForce::find(catalogues, store, node, own.clone()).await?;
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

    /// Takes in what upstreams report.
    pub(crate) fn reports(&self) -> Arc<UpstreamReports> {
        self.carriers.reports()
    }

    /// Follows what other nodes publish, and reads its own file whenever somebody asks for it.
    pub(crate) async fn run(&mut self, mut asked: Signal) {
        let mut published = self.carriers.routes();
        // Something may have been published since this node chose what to start with.
        published.mark_changed();
        loop {
            tokio::select! {
                signal = asked.recv() => {
                    if signal.is_none() {
                        return;
                    }
                    match self.reload().await {
                        Ok(()) => tracing::info!("carriers and routes are as the configuration says now"),
                        Err(error) => tracing::error!(
                            error = format!("{error:#}"),
                            "the configuration cannot be followed; carriers and routes stay as they were"
                        ),
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
        let own = own_rules(&config, self.paths);
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

/// The rules of this node's file.
fn own_rules(config: &Config, paths: &ConfigPaths) -> PublishedRules<Route> {
    let is_named = |name: &str| {
        let mut named = config.routes.iter().flat_map(|route| &route.carriers);
        named.any(|other| other == name)
    };
    let carriers = config.carriers();
    let named = carriers.iter().filter(|carrier| is_named(carrier.name()));
    PublishedRules {
        modified_us: config::modified_at(paths).map_or(0, Timestamp::as_microsecond),
        carriers: named
            .map(|carrier| NamedCarrier::new(carrier.name(), &carrier.channels()))
            .collect(),
        routes: config.routes.clone(),
    }
}
