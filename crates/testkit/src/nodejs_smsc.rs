//! An SMSC by others: the package `smpp` for Node.js. A script of ours runs it and writes its log
//! (`crates/testkit/smsc`).
//!
//! The log is a file, so the SMSC can be killed and restarted without losing anything.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::temp_dir::{TempDir, temp_dir};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/smsc/smsc.js");

/// A message as the package decoded it. Octets are written in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeJsSubmit {
    /// The ID that the SMSC assigned.
    pub id: u64,
    /// The ID as the answer contained it.
    pub answered: String,
    /// The session, counted from 0 since the last start of the SMSC.
    pub session: usize,
    /// The sequence number.
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
    /// The field of that name, not decoded.
    pub validity_period: String,
    /// The field of that name, its header included.
    pub short_message: String,
    /// The text of `short_message` as the package decoded it. Binary messages have none.
    #[serde(default, deserialize_with = "text")]
    pub text: Option<String>,
    /// The TLV of that name.
    pub message_payload: Option<String>,
    /// The text of `message_payload` as the package decoded it.
    #[serde(default, deserialize_with = "text")]
    pub payload_text: Option<String>,
    /// The TLV of that name.
    pub sar_msg_ref_num: Option<u16>,
    /// The TLV of that name.
    pub sar_total_segments: Option<u8>,
    /// The TLV of that name.
    pub sar_segment_seqnum: Option<u8>,
}

/// A text from a handset. The package chooses its encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeJsText {
    /// The session, counted from 0 among those that are bound, in the order in which they were bound.
    pub link: usize,
    /// The handset.
    pub from: String,
    /// The number that it sends to.
    pub to: String,
    /// The header with its length, in hexadecimal; empty for none.
    pub udh: String,
    /// The text.
    pub message: String,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum NodeJsEvent {
    /// A bind, accepted or not.
    Bind {
        /// The session, counted from 0 since the last start of the SMSC.
        session: usize,
        /// The command, such as `bind_transceiver`.
        command: String,
        /// The system ID of the client.
        system_id: String,
        /// The status of the answer; 0 means accepted.
        status: u32,
    },
    /// A message.
    Submit(Box<NodeJsSubmit>),
    /// A receipt that the client accepted.
    Receipt {
        /// The ID of the message.
        id: u64,
    },
    /// A text from a handset that the client answered.
    Text {
        /// The number of the text, counted from 0 since the first start of the SMSC.
        line: usize,
        /// The session.
        session: usize,
        /// The status of the answer; 0 means accepted.
        status: u32,
    },
    /// An `unbind` from the client.
    Unbind {
        /// The session.
        session: usize,
    },
    /// A connection that was closed.
    Close {
        /// The session.
        session: usize,
    },
}

/// A running SMSC. On drop it is killed and its log is removed.
#[derive(Debug)]
pub struct NodeJsSmsc {
    process: Process,
    home: TempDir,
}

impl NodeJsSmsc {
    /// Starts it on a free port of `127.0.0.1`, with options of the script. Panics if it does not start, and says what
    /// to install.
    pub fn start(options: &[&str]) -> Self {
        let home = temp_dir("smsc").expect("a temporary folder");
        File::create(texts(home.path())).expect("an empty file");
        let process = start(home.path(), 0, options).unwrap_or_else(|error| panic!("{error:?}"));
        Self { process, home }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.process.addr()
    }

    /// Sends SIGKILL.
    pub fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Kills it if it runs, and starts it again on the same port and log.
    pub fn restart(&mut self, options: &[&str]) {
        self.process.kill9();
        self.process = start(self.home.path(), self.addr().port(), options)
            .unwrap_or_else(|error| panic!("no restart: {error:?}"));
    }

    /// Delivers texts from handsets, each as soon as its session is bound, and until the client accepts it.
    pub fn deliver(&self, texts_to_deliver: &[NodeJsText]) {
        let line = |text| serde_json::to_string(text).expect("plain fields") + "\n";
        let lines: String = texts_to_deliver.iter().map(line).collect();
        let file = File::options().append(true).open(texts(self.home.path()));
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.expect("the file of texts can be written");
    }

    /// The log since the first start.
    pub fn events(&self) -> Vec<NodeJsEvent> {
        let log = fs::read(log(self.home.path())).expect("it has a log");
        let lines = log.split_inclusive(|octet| *octet == b'\n');
        // A line without an end is still being written, or was cut off by a kill.
        let whole = lines.filter(|line| line.ends_with(b"\n"));
        let read = |line| serde_json::from_slice(line).expect("a line of the script");
        whole.map(read).collect()
    }

    /// The messages in the log.
    pub fn submits(&self) -> Vec<NodeJsSubmit> {
        let submit = |event| match event {
            NodeJsEvent::Submit(submit) => Some(*submit),
            _ => None,
        };
        self.events().into_iter().filter_map(submit).collect()
    }
}

fn start(home: &Path, port: u16, options: &[&str]) -> Result<Process> {
    let mut command = Command::new("node");
    command.arg(SCRIPT).arg("--log").arg(log(home));
    command.arg("--texts").arg(texts(home));
    command.args(["--port", &port.to_string()]).args(options);
    Process::start(command).context(
        "no SMSC for this test. It runs on Node.js with a package; scripts/node-packages installs both",
    )
}

fn log(home: &Path) -> PathBuf {
    home.join("smsc.log")
}

fn texts(home: &Path) -> PathBuf {
    home.join("texts")
}

/// Values that are not strings count as absent.
fn text<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(value)?;
    Ok(value.as_str().map(str::to_owned))
}
