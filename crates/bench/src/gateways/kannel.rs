//! Kannel with an SMSC, for comparison.

use super::RunningGateway;
use anyhow::Result;
use std::net::SocketAddr;
use testkit::http;
use testkit::kannel::{Kannel, KannelOptions};
use testkit::load::Requests;

/// Starts it with the same window as Switchboard.
pub(crate) fn start(smsc: SocketAddr, window: u64, with_spool: bool) -> Result<Kannel> {
    Kannel::start(&KannelOptions {
        servers: &[smsc],
        system_id: "bench",
        password: "bench",
        window,
        with_spool,
    })
}

impl RunningGateway for Kannel {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.addr()]
    }

    fn pids(&self) -> Vec<u32> {
        Kannel::pids(self).to_vec()
    }

    fn requests(&self, addr: SocketAddr, callback_url: &str) -> Requests {
        let path = Kannel::sending_path("+37120000001", callback_url);
        Requests::Fixed(http::encode(addr, "GET", &path, &[], b""))
    }
}
