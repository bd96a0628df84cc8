//! A long run on `SQLite` that measures whether memory grows, and the disk space for each message.

use crate::measure;
use crate::memory::{self, Memory};
use crate::options::Options;
use anyhow::Result;
use std::time::Duration;
use testkit::Backend;
use testkit::load::{self, Load, Report, Requests, RunLimit};

pub(super) const CONNECTIONS: usize = 64;
/// Memory is read after each step.
const STEP_MESSAGES: u64 = 100_000;

/// The state after a number of messages.
pub(super) struct Step {
    pub(super) messages: u64,
    pub(super) rate: u64,
    pub(super) memory: Memory,
    pub(super) is_clean: bool,
}

/// The result of the run.
pub(super) struct Soak {
    pub(super) steps: Vec<Step>,
    pub(super) bytes_per_message: u64,
    pub(super) wrong_sample: Option<String>,
}

pub(super) fn run(options: &Options) -> Result<Soak> {
    let (server, request) = measure::switchboard(&options.switchboard, Backend::Sqlite)?;
    let empty_bytes = memory::folder_bytes(&server.data_dir())?;
    let mut soak = Soak {
        steps: Vec::new(),
        bytes_per_message: 0,
        wrong_sample: None,
    };
    let mut messages = 0;
    while messages < options.soak_messages {
        let count = STEP_MESSAGES.min(options.soak_messages - messages);
        messages += count;
        let report = load::run(server.addr(), counted(count, &request));
        soak.steps
            .push(step(messages, &report, memory::of_process(server.pid())?));
        soak.wrong_sample = soak
            .wrong_sample
            .or(report.wrong_sample)
            .or(report.failure_sample);
    }
    let grown = memory::folder_bytes(&server.data_dir())?.saturating_sub(empty_bytes);
    soak.bytes_per_message = grown / messages.max(1);
    Ok(soak)
}

fn counted(count: u64, request: &[u8]) -> Load {
    Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Count(count),
        requests: Requests::Fixed(request.to_vec()),
        on_answer: None,
    }
}

fn step(messages: u64, report: &Report, memory: Memory) -> Step {
    eprintln!("soak: {messages} messages, {} KiB resident", memory.now_kib);
    let is_clean = report.is_clean(CONNECTIONS);
    Step {
        messages,
        rate: report.rate(),
        memory,
        is_clean,
    }
}
