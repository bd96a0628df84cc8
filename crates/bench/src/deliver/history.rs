//! `bench history`: how much millions of old messages slow down the delivery of new ones.

use super::Options;
use super::flow::{self, Flow, FlowSettings};
use super::growth::{TURNS, rate};
use super::report::worst_p99;
use super::target::Target;
use crate::accept::check_prerequisites;
use crate::goals::{Goal, hundredths};
use crate::options::number;
use crate::report::{milliseconds, write_goals};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use testkit::{Backend, TestDatabase};

const MIN_PERCENT_OF_EMPTY: u64 = 80;
/// The rows are spread over this many days, up to yesterday.
const DAYS: u64 = 30;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct HistoryOptions {
    rows: u64,
    flow: Options,
}

impl HistoryOptions {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut rows = 10_000_000;
        let mut rest = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--rows" {
                let value = arguments.next().context("--rows needs a value")?;
                rows = number(argument, value)?.max(DAYS);
            } else {
                rest.push(argument.clone());
            }
        }
        let flow = Options::parse(&rest)?;
        Ok(Self { rows, flow })
    }
}

/// Measures a server with history and an empty one in turns, and prints the table.
pub(crate) fn run_history(options: &HistoryOptions) -> Result<()> {
    check_prerequisites(&options.flow.switchboard)?;
    let empty = Target::start(&options.flow, Backend::Postgres)?;
    let full = Target::start(&options.flow, Backend::Postgres)?;
    let database = full
        .server
        .database()
        .context("the server has no PostgreSQL database")?;
    fill(database, options.rows)?;
    empty.warm_up(&options.flow)?;
    full.warm_up(&options.flow)?;
    let settings = FlowSettings::new(turn(&options.flow), options.flow.outstanding);
    let (mut none, mut with) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let mut order = [(&empty, &mut none), (&full, &mut with)];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (target, flows) in order {
            flows.push(flow::run(target, &settings)?);
        }
    }
    print!(
        "{}",
        table(options.rows, full.database_bytes()?, &none, &with)
    );
    Ok(())
}

/// The length of a turn. All turns together take as long as a sustained run.
fn turn(options: &Options) -> Duration {
    (options.sustained / (2 * TURNS)).max(Duration::from_secs(3))
}

fn table(rows: u64, bytes: u64, none: &[Flow], with: &[Flow]) -> String {
    let (rate_empty, rate_full) = (rate(none), rate(with));
    let mut text = format!(
        "\nWith {rows} messages of history over {DAYS} days ({} MB in total), compared with an empty database, in turns:\n\n\
         | database | delivered/s | of the empty one | delay p99 ms, worst turn |\n|---|--:|--:|--:|\n",
        bytes / 1_000_000
    );
    for (name, rate, flows) in [
        ("empty", rate_empty, none),
        ("with history", rate_full, with),
    ] {
        let share = hundredths(rate * 100 / rate_empty.max(1));
        let delay = milliseconds(worst_p99(flows));
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "| {name} | {rate} | {share} | {delay} |");
    }
    let unclean = none.iter().chain(with).filter(|flow| !flow.is_clean());
    let unclean = unclean.count();
    let ratio = rate_full * 100 / rate_empty.max(1);
    let goals = [
        Goal::new(
            "with history at least 0.80 of the rate of the empty database",
            Some((hundredths(ratio), ratio >= MIN_PERCENT_OF_EMPTY)),
        ),
        Goal::new(
            "no turn with errors or lost callbacks",
            Some((unclean.to_string(), unclean == 0)),
        ),
    ];
    let _infallible = write_goals(&mut text, &goals);
    text
}

/// Fills the database with messages that were delivered and whose callbacks were received.
fn fill(database: &TestDatabase, rows: u64) -> Result<()> {
    let started = Instant::now();
    for (statement, day) in (0..DAYS).map(|back| (statements(rows / DAYS, DAYS - back), back)) {
        database.execute_blocking(&statement)?;
        eprintln!(
            "  day {} of {DAYS} filled, {:.0} s",
            day + 1,
            started.elapsed().as_secs_f64()
        );
    }
    database.execute_blocking("VACUUM ANALYZE")?;
    eprintln!("  vacuumed, {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Fills one day, `back` days ago. The partitions are attached after they are filled, so that their indexes are built
/// in one step. Parts are kept for three days.
fn statements(rows: u64, back: u64) -> String {
    let parts = match back {
        ..=3 => PARTS,
        _ => "",
    };
    let day = DAY.replace("{parts}", parts);
    let day = day.replace("{rows}", &rows.to_string());
    day.replace("{back}", &back.to_string())
}

const DAY: &str = "
    SET synchronous_commit = off; SET maintenance_work_mem = '256MB';
    DO $fill$ DECLARE
        day BIGINT := CAST(extract(epoch FROM now()) AS BIGINT) / 86400 - {back};
        first BIGINT := (day - 20454) << 32;
        name TEXT := to_char(DATE '1970-01-01' + CAST(day AS INT), 'YYYYMMDD');
        parent TEXT;
    BEGIN
        FOREACH parent IN ARRAY ARRAY['message', 'callback', 'callback_attempt'] LOOP
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS)', parent || '_' || name, parent);
        END LOOP;
        EXECUTE format($sql$
            INSERT INTO %I (id, account_id, recipient, originator, body, coding, coding_given, parts, priority, dlr_url,
                accepted_us, expires_us, state, final_us, status, error, price_micros, network, channel)
            SELECT $1 + n, 1, 37120000000 + n * 7919 %% 9000000, 'Switchboard',
                convert_to('Your code is ' || (100000 + n * 7919 %% 900000) || '. It is valid for 10 minutes.', 'UTF8'),
                0, FALSE, 1, 1, convert_to('https://hooks.example.com/dlr', 'UTF8'), t.at_us, t.at_us + 259200000000, 0,
                t.at_us + 4000000, 1, 0, 55000, 2472001, 0
            FROM generate_series(CAST(0 AS BIGINT), {rows} - 1) AS n
            CROSS JOIN LATERAL (SELECT $2 * 86400000000 + n * 86000000000 / {rows} AS at_us) AS t
        $sql$, 'message_' || name) USING first, day;
        EXECUTE format($sql$
            INSERT INTO %I (account_id, message_id, created_us, due_us, state, tries, kind)
            SELECT account_id, id, final_us, final_us, 2, 1, 0 FROM %I
        $sql$, 'callback_' || name, 'message_' || name);
        EXECUTE format($sql$
            INSERT INTO %I (callback_id, number, message_id, at_us, status, elapsed_ms, body, address, reason)
            SELECT id, 1, message_id, created_us, 200, 12, convert_to('OK', 'UTF8'), '192.0.2.1:443',
                convert_to('received', 'UTF8')
            FROM %I
        $sql$, 'callback_attempt_' || name, 'callback_' || name);
        FOREACH parent IN ARRAY ARRAY['message', 'callback', 'callback_attempt'] LOOP
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent,
                parent || '_' || name, first, first + 4294967296);
        END LOOP;
        {parts}
    END $fill$";
const PARTS: &str = "
        INSERT INTO transit (carrier, reference, id, part, parts, taken_us, status, error)
        SELECT 'simulator', convert_to(md5(CAST(m.id AS TEXT)), 'UTF8'), m.id, 1, 1, m.accepted_us, 1, 0
        FROM message AS m WHERE m.id >= first AND m.id < first + {rows};";

#[cfg(test)]
mod tests {
    use super::HistoryOptions;

    fn parse(line: &str) -> anyhow::Result<HistoryOptions> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        HistoryOptions::parse(&arguments)
    }

    #[test]
    fn rows_can_be_combined_with_the_flags_of_the_flow() {
        let options = parse("--seconds 10 --rows 3000 --outstanding 7").expect("valid");
        assert_eq!((options.rows, options.flow.outstanding), (3_000, 7));
        assert_eq!(parse("").expect("valid").rows, 10_000_000);
        for line in ["--rows", "--rows x", "--lines 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
