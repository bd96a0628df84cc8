//! An SMSC that nobody here wrote: the package `smpp` for Node.js, run by a script of ours that only keeps its log
//! (`crates/testkit/smsc`).
//!
//! It keeps its log on the disk, so it can be killed and started again as if nothing was lost.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::folder::TempDir;
use crate::process::Process;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/smsc/smsc.js");

/// A message, as the package read it. Octets are in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSubmit {
    /// The number that the SMSC gave to it.
    pub id: u64,
    /// That number as it stood in the answer.
    pub answered: String,
    /// On which session it came, from 0 in each life of the SMSC.
    pub session: usize,
    /// Its sequence number.
    pub sequence: u32,
    /// The field of that name.
    pub service_type: String,
    /// The sender's type of number.
    pub from_ton: u8,
    /// The sender's numbering plan.
    pub from_npi: u8,
    /// The sender.
    pub from: String,
    /// The recipient's type of number.
    pub to_ton: u8,
    /// The recipient's numbering plan.
    pub to_npi: u8,
    /// The recipient.
    pub to: String,
    /// The field of that name.
    pub esm_class: u8,
    /// The field of that name.
    pub data_coding: u8,
    /// The field of that name.
    pub registered_delivery: u8,
    /// The field of that name, as it was written.
    pub validity_period: String,
    /// The field of that name, its header included.
    pub short_message: String,
    /// The text that the package makes of it. Binary ones have none.
    #[serde(default, deserialize_with = "text")]
    pub text: Option<String>,
    /// The TLV of that name.
    pub message_payload: Option<String>,
    /// The text that the package makes of it.
    #[serde(default, deserialize_with = "text")]
    pub payload_text: Option<String>,
    /// The TLV of that name.
    pub sar_msg_ref_num: Option<u16>,
    /// The TLV of that name.
    pub sar_total_segments: Option<u8>,
    /// The TLV of that name.
    pub sar_segment_seqnum: Option<u8>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum NodeEvent {
    /// A bind, accepted or not.
    Bind {
        /// The session, from 0 in each life of the SMSC.
        session: usize,
        /// `bind_transceiver` and its like.
        command: String,
        /// Who binds.
        system_id: String,
        /// What it was answered; 0 is accepted.
        status: u32,
    },
    /// A message.
    Submit(Box<NodeSubmit>),
    /// A receipt that was answered in the affirmative.
    Receipt {
        /// Of which message.
        id: u64,
    },
    /// An `unbind` of the other side.
    Unbind {
        /// The session.
        session: usize,
    },
    /// A connection that is gone.
    Close {
        /// The session.
        session: usize,
    },
}

/// A running SMSC. Killed on drop, and its log with it.
#[derive(Debug)]
pub struct NodeSmsc {
    process: Process,
    home: TempDir,
}

impl NodeSmsc {
    /// One on a free port of `127.0.0.1`, with the options that the script explains. Panics when it does not come up,
    /// and says what to install.
    pub fn start(options: &[&str]) -> Self {
        let home = TempDir::create("smsc").expect("a temporary folder");
        let process = start(home.path(), 0, options).unwrap_or_else(|error| panic!("{error:?}"));
        Self { process, home }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// SIGKILL.
    pub fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Ends it, if it runs, and starts it on the same port and the same log, with these options.
    pub fn restart(&mut self, options: &[&str]) {
        self.process.kill9();
        self.process = start(self.home.path(), self.addr().port(), options)
            .unwrap_or_else(|error| panic!("no restart: {error:?}"));
    }

    /// Its log so far, over all its lives.
    pub fn events(&self) -> Vec<NodeEvent> {
        let log = fs::read(log(self.home.path())).expect("it has a log");
        let lines = log.split_inclusive(|octet| *octet == b'\n');
        // A line that has no end is still being written, or was cut short.
        let whole = lines.filter(|line| line.ends_with(b"\n"));
        let read = |line| serde_json::from_slice(line).expect("a line of the script");
        whole.map(read).collect()
    }

    /// The messages of the log so far.
    pub fn submits(&self) -> Vec<NodeSubmit> {
        let submit = |event| match event {
            NodeEvent::Submit(submit) => Some(*submit),
            _ => None,
        };
        self.events().into_iter().filter_map(submit).collect()
    }
}

fn start(home: &Path, port: u16, options: &[&str]) -> Result<Process> {
    let mut command = Command::new("node");
    command.arg(SCRIPT).arg("--log").arg(log(home));
    command.args(["--port", &port.to_string()]).args(options);
    Process::start(command).context(
        "no SMSC for this test. It runs on Node.js with a package; scripts/node-packages installs both",
    )
}

fn log(home: &Path) -> std::path::PathBuf {
    home.join("smsc.log")
}

/// What is no text was not read as one.
fn text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(value)?;
    Ok(value.as_str().map(str::to_owned))
}
