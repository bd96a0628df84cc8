//! The run as Markdown, ready for `docs/PERFORMANCE.md`.

use super::{Options, Round, WINDOW, cores};
use crate::goals::{Goal, hundredths};
use crate::report::{machine, write_goals};
use std::fmt::Write as _;

const RATE: u64 = 150_000;
const OF_PLAIN_PERCENT: u64 = 50;

pub(super) fn markdown(options: &Options, rounds: &[Round]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rounds);
    text
}

fn write_all(text: &mut String, options: &Options, rounds: &[Round]) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Client and SMSC share it, the SMSC on a thread of its own; one connection over loopback, {WINDOW} \
         messages under way, sent by {WINDOW} tasks; {} s for each figure. “Plain” writes ready octets and counts answers.\n",
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
    let middle = |figure: &dyn Fn(&Round) -> u64| {
        let mut figures: Vec<u64> = rounds.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied()
    };
    vec![
        Goal::new(
            "at least 150,000 messages a second by one session",
            middle(&|round| round.session()).map(|rate| (rate.to_string(), rate >= RATE)),
        ),
        Goal::new(
            "at least 0.50 of the plain loop",
            middle(&|round| round.percent(round.session()))
                .map(|percent| (hundredths(percent), percent >= OF_PLAIN_PERCENT)),
        ),
    ]
}
