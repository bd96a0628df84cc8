//! The benchmark: the release binary under load, beside a bare handler on the same machine.
//!
//! `scripts/bench` builds everything and starts `PostgreSQL`. Timing never decides the exit status:
//! a slow machine is not a failure, and the table says which goals are reached.

mod accept;
mod bare;
mod goals;
mod measure;
mod memory;
mod options;
mod report;
mod soak;

use anyhow::{Result, bail};
use std::env;

const USAGE: &str = "\
usage: bench accept [--quick] [--seconds N] [--soak MESSAGES] [--switchboard PATH]
       bench bare

accept   how fast POST /sms accepts, on SQLite and on PostgreSQL, beside a bare handler
bare     that bare handler, on a free port of loopback

--quick        2 seconds each, 1 and 64 connections, no soak: only to see that it works
--seconds      how long each row is measured, after a warm-up of 2 seconds (default 8)
--soak         how many messages the memory run sends; 0 for none (default 1000000)
--switchboard  the binary to measure (default: the one beside this one)";

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("accept") => accept::run(&options::parse(&arguments[1..])?),
        Some("bare") => bare::serve(),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}
