//! `bench inbound`: texts from handsets, from the `deliver_sm` of a carrier to the callback that is answered with `OK`.

mod flow;
mod goals;
mod options;
mod report;
mod smsc;
mod tracker;

pub(crate) use options::Options;

use crate::accept::check_prerequisites;
use crate::cost::database_work::Postgres;
use crate::cost::turn::{Meter, Reading};
use crate::gateways::RunningGateway as _;
use crate::gateways::switchboard::{CARRIER, Nodes};
use crate::measure::Subject;
use crate::{fill, memory};
use anyhow::Result;
use flow::Flow;
use smsc::Smsc;
use std::net::SocketAddr;
use std::time::Duration;
use testkit::Backend;
use tracker::Totals;

/// The numbers of the account. Each flow has one, and so its own receiver.
const WARM_UP_NUMBER: &str = "1234";
const MEASURED_NUMBER: &str = "1235";

/// The result of one turn.
struct Row {
    backend: Backend,
    totals: Totals,
    spent: Reading,
    peak_kib: u64,
}

impl Row {
    fn name(&self) -> &'static str {
        Subject::Switchboard(self.backend).name()
    }

    /// Microseconds for each message.
    fn per_message(&self, time: Duration) -> u64 {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        micros / self.totals.called_back.max(1)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.timed.switchboard)?;
    let mut rows = Vec::new();
    for turn in 1..=options.turns {
        for backend in options.timed.backends() {
            let name = Subject::Switchboard(backend).name();
            eprintln!(
                "turn {turn}: {name}, {} s …",
                options.timed.measured.as_secs()
            );
            let row = measure(options, backend)?;
            eprintln!(
                "  {}/s, {} µs, p50 {:?}, p99 {:?}, {} missing, {} repeated",
                row.totals.rate(),
                row.per_message(row.spent.nodes.total()),
                row.totals.delay.percentile(50),
                row.totals.delay.percentile(99),
                row.totals.missing(),
                row.totals.repeated,
            );
            rows.push(row);
        }
    }
    print!("{}", report::markdown(options, &rows));
    Ok(())
}

fn measure(options: &Options, backend: Backend) -> Result<Row> {
    let smsc = Smsc::start(options.window)?;
    let config = config(smsc.addr(), options.sessions);
    let mut nodes = Nodes::start(&options.timed.switchboard, backend, 1, &config, &[])?;
    if options.rows > 0 {
        fill::history::fill(&mut nodes.nodes[0], CARRIER, options.rows)?;
    }
    smsc.wait_for_sessions(options.sessions)?;
    let server = nodes.first();
    let postgres = server.database().map(Postgres::new).transpose()?;
    let meter = Meter {
        pids: nodes.pids(),
        postgres: postgres.as_ref(),
    };
    let flow = |number, duration| Flow {
        number,
        duration,
        outstanding: options.outstanding,
    };
    flow(WARM_UP_NUMBER, options.warm_up).run(&smsc, server)?;
    meter.wait_until_quiet()?;
    let before = meter.read()?;
    let totals = flow(MEASURED_NUMBER, options.timed.measured).run(&smsc, server)?;
    meter.wait_until_quiet()?;
    Ok(Row {
        backend,
        totals,
        spent: meter.read()? - before,
        peak_kib: memory::of_process(server.pid())?.peak_kib,
    })
}

/// The configuration file with the SMSC as the only carrier.
fn config(smsc: SocketAddr, sessions: usize) -> String {
    format!(
        "[[carrier]]\nname = '{CARRIER}'\nkind = 'smpp'\naddress = '{smsc}'\nsystem_id = 'bench'\npassword = 'bench'\n\
         binds = {sessions}\n"
    )
}
