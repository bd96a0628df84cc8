//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::{Options, Round, WINDOW, cores};
use crate::goals::{Goal, hundredths};
use crate::report::{machine, write_goals};
use std::fmt::Write as _;

const MIN_RATE: u64 = 150_000;
const MIN_PERCENT_OF_PLAIN: u64 = 50;

pub(super) fn markdown(options: &Options, rounds: &[Round]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rounds);
    text
}

fn write_all(text: &mut String, options: &Options, rounds: &[Round]) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Client and SMSC share it, the SMSC on a separate thread; one connection over loopback, {WINDOW} \
         messages in flight, sent by {WINDOW} tasks; {} s for each figure. “Plain” writes encoded messages and counts answers.\n",
        machine(),
        options.seconds,
    )?;
    writeln!(
        text,
        "| round | plain messages/s | session, 1 worker | of plain | session, {} workers | of plain |\n|--:|--:|--:|--:|--:|--:|",
        cores()
    )?;
    for (number, round) in rounds.iter().enumerate() {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            number + 1,
            round.plain,
            round.one_worker,
            hundredths(round.percent(round.one_worker)),
            round.all_workers,
            hundredths(round.percent(round.all_workers)),
        )?;
    }
    write_goals(text, &goals(rounds))
}

impl Round {
    fn percent(self, rate: u64) -> u64 {
        rate * 100 / self.plain.max(1)
    }

    fn session(self) -> u64 {
        self.one_worker.max(self.all_workers)
    }
}

fn goals(rounds: &[Round]) -> Vec<Goal> {
    let median = |figure: &dyn Fn(&Round) -> u64| {
        let mut figures: Vec<u64> = rounds.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied()
    };
    vec![
        Goal::new(
            "at least 150,000 messages a second by one session",
            median(&|round| round.session()).map(|rate| (rate.to_string(), rate >= MIN_RATE)),
        ),
        Goal::new(
            "at least 0.50 of the plain loop",
            median(&|round| round.percent(round.session()))
                .map(|percent| (hundredths(percent), percent >= MIN_PERCENT_OF_PLAIN)),
        ),
    ]
}
