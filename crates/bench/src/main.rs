//! The benchmarks: they put load on the release binary and compare it with baselines on the same machine, such as a
//! bare HTTP handler.
//!
//! `scripts/bench` builds everything and starts `PostgreSQL`. The exit status does not depend on the results: a slow
//! machine is not a failure, and the tables say which goals are reached.

mod accept;
mod bare;
mod compare;
mod cost;
mod dashboard;
mod deliver;
mod fill;
mod gateways;
mod goals;
mod growth;
mod http_carrier;
mod inbound;
mod measure;
mod memory;
mod numbers;
mod options;
mod processor_time;
mod report;
mod smpp;
mod smpp_server;

use anyhow::{Result, bail};
use std::env;

const USAGE: &str = "\
usage: bench accept [--quick] [--seconds N] [--soak MESSAGES] [--switchboard PATH]
       bench deliver [--quick] [--seconds N] [--all] [--only sqlite|postgres] [--waiting N,N,…]
                     [--outstanding N] [--delay-ms N] [--switchboard PATH]
       bench open-transaction [--quick] [--minutes N] [--slice-s N] [--outstanding N] [--delay-ms N]
                              [--switchboard PATH]
       bench history [--rows N] [--seconds N] [--outstanding N] [--delay-ms N] [--switchboard PATH]
       bench receivers [--quick] [--reports N] [--seconds N] [--delay-ms N] [--switchboard PATH]
       bench numbers [--quick] [--seconds N] [--python PATH] [--switchboard PATH]
       bench dashboard [--quick] [--messages N] [--only sqlite|postgres] [--switchboard PATH]
       bench start [--quick] [--messages N] [--only sqlite|postgres] [--switchboard PATH]
       bench cluster [--quick] [--seconds N] [--kills N] [--switchboard PATH]
       bench cost [--quick] [--messages N] [--turns N] [--only sqlite|postgres] [--statements] [--with PATH]
                  [--switchboard PATH]
       bench growth [--quick] [--messages N] [--turns N] [--only sqlite|postgres] [--case NAME,…] [--statements]
                    [--switchboard PATH]
       bench inbound [--quick] [--seconds N] [--turns N] [--rows N] [--only sqlite|postgres] [--sessions N]
                     [--window N] [--outstanding N] [--switchboard PATH]
       bench http-carrier [--quick] [--seconds N] [--turns N] [--window N] [--delay-ms N] [--only sqlite|postgres]
                          [--switchboard PATH]
       bench compare --with PATH [--rounds N] [--seconds N] [--switchboard PATH]
       bench smpp [wire [--quick] [--seconds N] [--rounds N]]
                  [gateways [--seconds N] [--turns N] [--window N] [--switchboard PATH]]
       bench smpp-server [--quick] [--seconds N] [--only sqlite|postgres] [--switchboard PATH]
       bench bare [FILE]

accept     how fast POST /sms accepts messages, on SQLite and on PostgreSQL, compared with a bare handler
deliver    how fast messages go from POST /sms through the simulated network to the answered callback, on
           both databases, and how much waiting messages slow this down
open-transaction
           how fast messages are delivered on PostgreSQL while a transaction is kept open, compared with a
           database without one, in turns
history    how fast messages are delivered on PostgreSQL with millions of old messages in the database,
           compared with an empty database
receivers  how soon a healthy receiver gets its reports on PostgreSQL while 20 dead or slow receivers have
           a backlog, and how much load that causes in the database
numbers    how fast numbers are corrected, in one process and over HTTP, compared with Google's library for
           Python, and how fast prices and prefixes are answered, compared with a bare handler
dashboard  the time to the first byte of each page of the dashboard with a million messages in the
           database, on SQLite and on PostgreSQL
start      the time until a started process is ready, and its memory then, with a million messages in the
           database
cluster    one, two and three nodes on one PostgreSQL, accepting and end to end, and the time until all
           messages of a killed node are called back
cost       the processor time of a message, accepted and end to end over SMPP, in the service, in PostgreSQL
           and in the benchmark itself; what PostgreSQL writes for it; compared with a bare handler, with
           Kannel, if that is installed, and with another build, in turns
growth     the rate and the processor time of a message, end to end over SMPP, with millions of messages or
           many accounts, routes or carriers, compared with a small installation, in turns, on both databases
inbound    how fast texts from handsets go from the deliver_sm of a carrier to the answered callback, on both
           databases, and the processor time of each
http-carrier
           how fast messages go from POST /sms to a provider by one HTTP carrier, on both databases
compare    how fast POST /sms accepts messages in this build and in another one, in turns
smpp       wire: how many messages a second one SMPP session sends, compared with a plain loop of writes
           and reads; gateways: from POST /sms over SMPP to the answered callback, compared with Kannel;
           without either, both
smpp-server
           how fast customers' submit_sm are stored, compared with POST /sms; the memory with 500 idle binds; a
           chain of two services that are connected by SMPP; on both databases
bare       runs the bare handler on a free port of loopback; with a file, it answers GET with its content

--quick        accept: 2 seconds each, 1 and 64 connections, no soak; deliver: 8 seconds each, 10000
               waiting; open-transaction: 3 slices of 2 seconds; dashboard and start: 20000 messages; receivers:
               2000 reports each; cost: one turn of 5000 messages; growth: one turn of 2000, little data; inbound:
               2 seconds; only to see that it works
--messages     dashboard and start: the number of messages in the database (default 1000000); cost, growth: the
               number of messages of a turn (default 30000)
--rows         the number of old messages (default: history 10000000, inbound 0), spread over 30 days
--reports      the number of reports that wait for each dead or slow receiver (default 100000)
--seconds      how long each row is measured, after a warm-up of 2 seconds (default: accept 8,
               deliver 60; a quarter of it for the rows with waiting messages; inbound 15)
--minutes      how long each of the two databases is under load (default 3)
--slice-s      the length of a turn in seconds (default 10)
--soak         the number of messages of the memory run; 0 for none (default 1000000)
--all          waiting messages on PostgreSQL too, not only on SQLite
--only         only this database
--waiting      the numbers of scheduled messages that wait, one row each; 0 for none (default
               10000,100000,1000000)
--outstanding  the maximum number of messages that are accepted, or delivered by the carrier, and not yet called
               back (default 5000)
--delay-ms     the delay of the simulated network (default 50); http-carrier: of the provider (default 20)
--kills        how often a node is killed (default 5)
--turns        how often each is measured (default: smpp gateways 2, of 15 seconds; cost, growth 5; inbound and http-carrier 1)
--case         some of history, waiting, callbacks, accounts, routes and prices (default: all)
--statements   also prints the statements that took most of PostgreSQL's time
--sessions     the number of SMPP sessions with the carrier (default 2)
--window       the maximum number of submits in flight in each gateway (default 500); inbound: of unanswered
               deliver_sm on each session (default 50); http-carrier: of requests (default 200)
--with         the binary of the other build
--rounds       the number of turns of each (default: compare 12, of 2 seconds; smpp 3, of 5)
--python       a Python with the package phonenumbers (default: python3)
--switchboard  the binary to measure (default: the one next to this one)";

/// The same as in the service, so that the comparison with the bare handler is fair.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("accept") => accept::run(&options::parse(&arguments[1..])?),
        Some("deliver") => deliver::run(&deliver::Options::parse(&arguments[1..])?),
        Some("open-transaction") => deliver::open_transaction::run(
            &deliver::open_transaction::Options::parse(&arguments[1..])?,
        ),
        Some("history") => deliver::run_history(&deliver::HistoryOptions::parse(&arguments[1..])?),
        Some("receivers") => deliver::receivers::run(&deliver::receivers::ReceiverOptions::parse(
            &arguments[1..],
        )?),
        Some("numbers") => numbers::run(&numbers::Options::parse(&arguments[1..])?),
        Some("dashboard") => dashboard::run(&dashboard::Options::parse(&arguments[1..])?),
        Some("start") => dashboard::start::run(&dashboard::Options::parse(&arguments[1..])?),
        Some("cluster") => {
            deliver::cluster::run(&deliver::cluster::Options::parse(&arguments[1..])?)
        }
        Some("cost") => cost::run(&cost::Options::parse(&arguments[1..])?),
        Some("growth") => growth::run(&growth::Options::parse(&arguments[1..])?),
        Some("inbound") => inbound::run(&inbound::Options::parse(&arguments[1..])?),
        Some("http-carrier") => http_carrier::run(&http_carrier::Options::parse(&arguments[1..])?),
        Some("compare") => compare::run(&compare::Options::parse(&arguments[1..])?),
        Some("smpp") => match arguments.get(1).map(String::as_str) {
            Some("wire") => smpp::run(&smpp::Options::parse(&arguments[1..])?),
            Some("gateways") => gateways::run(&gateways::Options::parse(&arguments[2..])?),
            _ => {
                smpp::run(&smpp::Options::parse(&["wire".to_owned()])?)?;
                gateways::run(&gateways::Options::parse(&arguments[1..])?)
            }
        },
        Some("smpp-server") => {
            smpp_server::run(&options::Timed::parse(&arguments[1..], |_, _| Ok(false))?)
        }
        Some("bare") => bare::serve(arguments.get(1).map(String::as_str)),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}
