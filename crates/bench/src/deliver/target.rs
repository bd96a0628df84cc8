//! The server that a benchmark puts load on, with an account that can pay.

use super::Options;
use super::flow::{self, FlowSettings};
use crate::{measure, memory};
use anyhow::Result;
use testkit::{Backend, Server};

const DELAY_VARIABLE: &str = "SWITCHBOARD_SIMULATOR__DELAY_MS";

pub(super) struct Target {
    pub(super) server: Server,
    pub(super) token: String,
}

impl Target {
    pub(super) fn start(options: &Options, backend: Backend) -> Result<Self> {
        let server = Server::builder(&options.switchboard, backend)
            .env(DELAY_VARIABLE, options.simulator_delay_ms.to_string())
            .try_start()?;
        let token = measure::create_account(&server, measure::ACCOUNT)?;
        Ok(Self { server, token })
    }

    /// Sends messages without measuring, to fill caches and grow pools.
    pub(super) fn warm_up(&self, options: &Options) -> Result<()> {
        flow::run(
            self,
            &FlowSettings::new(options.warm_up, options.outstanding),
        )?;
        Ok(())
    }

    /// The bytes of `POST /sms` with this body.
    pub(super) fn request(&self, body: &str) -> Vec<u8> {
        measure::request(self.server.addr(), &self.token, body)
    }

    /// The size of the database on disk, including its log.
    pub(super) fn database_bytes(&self) -> Result<u64> {
        Ok(match self.server.database() {
            Some(database) => database.size_bytes()?,
            None => memory::folder_bytes(&self.server.data_dir())?,
        })
    }
}
