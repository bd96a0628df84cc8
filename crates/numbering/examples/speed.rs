//! Measures how fast one process corrects numbers and looks them up, for `scripts/bench numbers`.
//!
//! `speed LIST SECONDS`, where each line of LIST is a number as it is written, a tab and an optional country code.
//! Prints a JSON object: corrections a second on one thread and on all cores, prefix lookups a second on one thread,
//! and the microseconds it takes to load the reference data.

use std::hint::black_box;
use std::time::{Duration, Instant};

use domain::{Country, Msisdn};
use numbering::Reference;

/// How often the reference data is loaded. The fastest time is reported, because it has the least noise.
const LOADS: usize = 20;

fn time_of<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    black_box(work());
    started.elapsed()
}

struct Item {
    raw: String,
    country: Option<Country>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("the list");
    let seconds = arguments.next().expect("the seconds");
    let time = Duration::from_secs(seconds.parse().expect("a whole number"));
    let items = read(&std::fs::read_to_string(path).expect("a readable list"));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);

    let one = rate(time, items.len(), || correct(&items));
    let all: f64 = std::thread::scope(|scope| {
        let work = || rate(time, items.len(), || correct(&items));
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });

    let loaded = (0..LOADS).map(|_| time_of(Reference::embedded)).min();
    let load_us = loaded.unwrap_or_default().as_micros();
    let reference = Reference::embedded();
    let numbers: Vec<Msisdn> = items.iter().filter_map(read_number).collect();
    let lookups = rate(time, numbers.len(), || {
        for number in &numbers {
            black_box(reference.locate(black_box(number)));
        }
    });
    println!(
        r#"{{"corrections":{one:.0},"correctionsOnAllCores":{all:.0},"lookups":{lookups:.0},"loadUs":{load_us}}}"#
    );
}

fn read(list: &str) -> Vec<Item> {
    let item = |line: &str| {
        let (raw, country) = line.split_once('\t').expect("a tab");
        Item {
            raw: raw.to_owned(),
            country: Country::parse(country).ok(),
        }
    };
    list.lines().map(item).collect()
}

fn read_number(item: &Item) -> Option<Msisdn> {
    let corrected = numbering::examine(&item.raw, item.country).ok()?;
    Some(corrected.number)
}

fn correct(items: &[Item]) {
    for item in items {
        // The error is part of the work that is measured.
        let _answer = black_box(numbering::examine(black_box(&item.raw), item.country));
    }
}

/// Items a second, after one warm-up pass.
#[expect(
    clippy::cast_precision_loss,
    reason = "a rate is printed with a few digits"
)]
fn rate(time: Duration, items: usize, pass: impl Fn()) -> f64 {
    pass();
    let started = Instant::now();
    let mut passes = 0_usize;
    while started.elapsed() < time {
        pass();
        passes += 1;
    }
    (passes * items) as f64 / started.elapsed().as_secs_f64()
}
