//! Following changes of carriers and rules while the service runs.

use anyhow::Context as _;
use tokio::signal::unix::Signal;

use crate::carriers::Carriers;
use crate::cli::Place;
use crate::config::{self, Config};
use crate::rules::{Published, Rules};

/// Goes over to changed carriers and rules while the service runs.
pub(crate) struct Follower<'a> {
    pub(crate) place: &'a Place,
    pub(crate) config: Config,
    pub(crate) carriers: Carriers,
    pub(crate) rules: Rules,
}

impl Follower<'_> {
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
        let config = config::load(self.place)?;
        let own = Published::of(&config, self.place);
        self.carriers.apply(&config, &own).await?;
        self.config = config;
        let published = self.rules.publish(own).await;
        published.context("the rules are in force here, but could not be published; try again")
    }

    async fn follow(&mut self) -> anyhow::Result<()> {
        let Some((version, published)) = self.rules.look().await? else {
            return Ok(());
        };
        self.carriers.apply(&self.config, &published).await?;
        self.rules.follow(version, published);
        tracing::info!(version, "following the rules that another node published");
        Ok(())
    }
}
