//! The benchmark: the release binary under load, beside a bare handler on the same machine.
//!
//! `scripts/bench` builds everything and starts `PostgreSQL`. Timing never decides the exit status:
//! a slow machine is not a failure, and the table says which goals are reached.

mod accept;
mod bare;
mod compare;
mod dashboard;
mod deliver;
mod gateways;
mod goals;
mod measure;
mod memory;
mod numbers;
mod options;
mod report;
mod smpp;
mod soak;

use anyhow::{Result, bail};
use std::env;

const USAGE: &str = "\
usage: bench accept [--quick] [--seconds N] [--soak MESSAGES] [--switchboard PATH]
       bench deliver [--quick] [--seconds N] [--all] [--only sqlite|postgres] [--waiting N,N,…]
                     [--outstanding N] [--delay-ms N] [--switchboard PATH]
       bench held [--quick] [--minutes N] [--slice-s N] [--outstanding N] [--delay-ms N]
                  [--switchboard PATH]
       bench history [--rows N] [--seconds N] [--outstanding N] [--delay-ms N] [--switchboard PATH]
       bench receivers [--quick] [--reports N] [--seconds N] [--delay-ms N] [--switchboard PATH]
       bench numbers [--quick] [--seconds N] [--python PATH] [--switchboard PATH]
       bench dashboard [--quick] [--messages N] [--only sqlite|postgres] [--switchboard PATH]
       bench cluster [--quick] [--seconds N] [--kills N] [--switchboard PATH]
       bench compare --with PATH [--rounds N] [--seconds N] [--switchboard PATH]
       bench smpp [wire [--quick] [--seconds N] [--rounds N]]
                  [way [--seconds N] [--turns N] [--window N] [--switchboard PATH]]
       bench bare [FILE]

accept   how fast POST /sms accepts, on SQLite and on PostgreSQL, beside a bare handler
deliver  how fast POST /sms, the simulated network, the receipt and the callback answered OK go
         through, on both, and what messages that wait cost
held     how fast messages go all that way on PostgreSQL while somebody holds a transaction open,
         beside a database that nobody holds, in turns
history  how fast messages are delivered on PostgreSQL with millions that ended long ago in the
         store, beside an empty store
receivers  how soon a healthy receiver gets its reports on PostgreSQL beside 20 that are dead or slow
         and have a backlog, and what that costs the database
numbers  how fast numbers are corrected, in one process and over HTTP, beside Google's library for
         Python, and how fast prices and prefixes are answered beside a bare handler
dashboard  how soon each page of the dashboard begins to arrive with a million messages in the
         store, on SQLite and on PostgreSQL
cluster  one, two and three nodes on one PostgreSQL, accepting and end to end, and how long it takes until
         what a killed node had accepted is called back
compare  how fast POST /sms accepts in this build and in another one, in turns
smpp     wire: how many messages a second one SMPP session sends, beside a plain loop of writes and
         reads; way: POST /sms to the callback answered OK by SMPP, beside Kannel; both without either
bare     that bare handler, on a free port of loopback; with a file, it answers GET with its bytes

--quick        accept: 2 seconds each, 1 and 64 connections, no soak; deliver: 8 seconds each, 10000
               waiting; held: 3 slices of 2 seconds; dashboard: 20000 messages; receivers: 2000 reports
               each; only to see that it works
--messages     how many messages the store is filled with (default 1000000)
--rows         how many messages of history (default 10000000), over 30 days
--reports      how many reports wait for each dead or slow receiver (default 100000)
--seconds      how long each row is measured, after a warm-up of 2 seconds (default: accept 8,
               deliver 60, of which the rows with messages waiting take a quarter)
--minutes      how long each of the two is under load (default 3)
--slice-s      in turns of so many seconds (default 10)
--soak         how many messages the memory run sends; 0 for none (default 1000000)
--all          messages waiting on PostgreSQL too, not on SQLite alone
--only         one store alone
--waiting      how many scheduled messages wait, one row each; 0 for none (default
               10000,100000,1000000)
--outstanding  how many messages may be accepted and not yet called back (default 5000)
--delay-ms     after which the simulated network reports (default 50)
--kills        how often a node is killed (default 5)
--turns        how often each gateway is measured (default 2, of 15 seconds)
--window       submits under way in each gateway (default 500)
--with         the binary of the other build
--rounds       how many turns each takes (default: compare 12, of 2 seconds; smpp 3, of 5)
--python       a Python with the package phonenumbers (default: python3)
--switchboard  the binary to measure (default: the one beside this one)";

/// That of the service, so that the bare handler is a fair neighbour.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("accept") => accept::run(&options::parse(&arguments[1..])?),
        Some("deliver") => deliver::run(&deliver::Options::parse(&arguments[1..])?),
        Some("held") => deliver::held::run(&deliver::held::Options::parse(&arguments[1..])?),
        Some("history") => deliver::run_history(&deliver::HistoryOptions::parse(&arguments[1..])?),
        Some("receivers") => deliver::receivers::run(&deliver::receivers::ReceiverOptions::parse(
            &arguments[1..],
        )?),
        Some("numbers") => numbers::run(&numbers::Options::parse(&arguments[1..])?),
        Some("dashboard") => dashboard::run(&dashboard::Options::parse(&arguments[1..])?),
        Some("cluster") => {
            deliver::cluster::run(&deliver::cluster::Options::parse(&arguments[1..])?)
        }
        Some("compare") => compare::run(&compare::Options::parse(&arguments[1..])?),
        Some("smpp") => match arguments.get(1).map(String::as_str) {
            Some("wire") => smpp::run(&smpp::Options::parse(&arguments[1..])?),
            Some("way") => gateways::run(&gateways::Options::parse(&arguments[2..])?),
            _ => {
                smpp::run(&smpp::Options::parse(&["wire".to_owned()])?)?;
                gateways::run(&gateways::Options::parse(&arguments[1..])?)
            }
        },
        Some("bare") => bare::serve(arguments.get(1).map(String::as_str)),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}
