//! This service with an SMSC as its only carrier.

use super::{Gateway, Options, Row, flow};
use crate::{measure, memory};
use anyhow::Result;
use std::net::SocketAddr;
use testkit::{Backend, Server};

pub(super) fn run(options: &Options, smsc: SocketAddr) -> Result<Row> {
    let window = options.window;
    let config = format!(
        "[[carrier]]\nname = 'smsc'\nkind = 'smpp'\naddress = '{smsc}'\nsystem_id = 'bench'\npassword = 'bench'\n\
         window = {window}\n"
    );
    let server = Server::builder(&options.switchboard, Backend::Sqlite)
        .config(config)
        .try_start()?;
    let token = measure::create_account(&server)?;
    let request = |url: &str| {
        let body = format!(
            r#"{{"to":"+37120000001","from":"Switchboard","message":"Your code is 123456. It is valid for 10 minutes.","dlrUrl":"{url}"}}"#
        );
        measure::request(server.addr(), &token, &body)
    };
    flow::run(options, options.warm_up, server.addr(), request)?;
    let flow = flow::run(options, options.measured, server.addr(), request)?;
    Ok(Row {
        gateway: Gateway::Switchboard,
        flow,
        peak_kib: memory::of_process(server.pid())?.peak_kib,
    })
}
