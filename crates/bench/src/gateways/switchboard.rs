//! This service with an SMSC as its only carrier.

use super::RunningGateway;
use crate::measure;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;
use testkit::load::Requests;
use testkit::{Backend, Server};

/// The name of the SMSC in the configuration.
pub(crate) const CARRIER: &str = "smsc";
const DATABASE_VARIABLE: &str = "SWITCHBOARD_DATABASE__URL";

/// The nodes of one installation.
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<Server>,
    /// Tokens of different accounts, which send in turn.
    pub(crate) tokens: Vec<String>,
}

impl Nodes {
    /// Starts nodes on a new database. `config` is their configuration file.
    pub(crate) fn start(
        binary: &Path,
        backend: Backend,
        count: usize,
        config: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let builder = |backend| {
            let builder = Server::builder(binary, backend).config(config);
            let arguments = arguments.iter();
            arguments.fold(builder, |builder, argument| builder.arg(*argument))
        };
        let first = builder(backend).try_start()?;
        let tokens = vec![measure::create_account(&first, measure::ACCOUNT)?];
        let url = first.database_url().map(str::to_owned);
        let mut nodes = vec![first];
        while nodes.len() < count {
            let url = url.as_deref().context("SQLite has one node")?;
            // It uses the first node's database, so the test kit creates none.
            let node = builder(Backend::Sqlite).env(DATABASE_VARIABLE, url);
            nodes.push(node.try_start()?);
        }
        Ok(Self { nodes, tokens })
    }

    pub(crate) fn first(&self) -> &Server {
        &self.nodes[0]
    }
}

impl RunningGateway for Nodes {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Server::addr).collect()
    }

    fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(Server::pid).collect()
    }

    fn requests(&self, addr: SocketAddr, callback_url: &str) -> Requests {
        let body = measure::message(callback_url);
        let request = |token: &String| measure::request(addr, token, &body);
        if let [token] = self.tokens.as_slice() {
            return Requests::Fixed(request(token));
        }
        let requests: Vec<Vec<u8>> = self.tokens.iter().map(request).collect();
        let mut in_turn = (0..requests.len()).cycle();
        Requests::Generated(Box::new(move |_, bytes| {
            bytes.extend(in_turn.next().into_iter().flat_map(|turn| &requests[turn]));
        }))
    }
}

/// The configuration file with an SMSC as the only carrier.
pub(crate) fn config(smsc: SocketAddr, window: u64) -> String {
    format!(
        "[[carrier]]\nname = '{CARRIER}'\nkind = 'smpp'\naddress = '{smsc}'\nsystem_id = 'bench'\npassword = 'bench'\n\
         window = {window}\n"
    )
}
