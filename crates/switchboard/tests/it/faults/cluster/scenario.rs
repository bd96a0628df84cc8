//! Scenarios by name, and the table of what came of them.

use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::{env, fs, thread};

use super::checker::{Lateness, Verdict};

/// Whether a scenario could be run.
pub(super) enum Ran {
    /// It was, so many cycles.
    Through(usize, Verdict),
    /// It could not be, for this reason: that is no success.
    Not(String),
}

/// A kind of fault.
pub(super) struct Scenario {
    /// As the table names it.
    pub(super) name: &'static str,
    /// How often the fault happens in the long run.
    pub(super) cycles: usize,
    pub(super) run: fn(usize) -> Ran,
    /// It mostly waits, so the long run has it beside the others.
    pub(super) is_idle: bool,
}

/// How many cycles a single scenario is run for, instead of the few: for whoever looks for a rare fault.
const CYCLES_VARIABLE: &str = "SWITCHBOARD_TEST_CYCLES";

/// Runs a scenario for so many cycles; panics when a promise was broken.
pub(super) fn run_short(scenario: &Scenario, cycles: usize) {
    let asked = env::var(CYCLES_VARIABLE).ok();
    let asked = asked.map(|cycles| cycles.parse().expect("a number of cycles"));
    match (scenario.run)(asked.unwrap_or(cycles)) {
        Ran::Not(reason) => println!("NOT RUN: {}: {reason}", scenario.name),
        Ran::Through(cycles, verdict) => {
            println!("{}", line(scenario.name, cycles, &verdict));
            println!("{}", describe_latest(&verdict));
            let breaches = &verdict.breaches;
            assert!(
                breaches.is_empty(),
                "{}",
                complaint(scenario.name, breaches)
            );
        }
    }
}

/// The long run has only the scenarios whose names contain this, where it is set.
const ONLY_VARIABLE: &str = "SWITCHBOARD_TEST_SCENARIO";

/// Runs all scenarios, prints the table, and panics when a promise was broken.
pub(super) fn run_long(scenarios: &'static [Scenario]) {
    let mut table =
        "| fault | cycles | messages | lost | duplicates | late |\n|---|---|---|---|---|---|\n"
            .to_owned();
    let mut complaints = Vec::new();
    let only = env::var(ONLY_VARIABLE).unwrap_or_default();
    let scenarios = scenarios.iter().filter(|one| one.name.contains(&only));
    let (idle, busy): (Vec<_>, Vec<_>) = scenarios.partition(|scenario| scenario.is_idle);
    thread::scope(|scope| {
        let start = |scenario: &'static Scenario| {
            scope.spawn(move || catch_unwind(|| (scenario.run)(scenario.cycles)))
        };
        let idle = idle.into_iter();
        let idle: Vec<_> = idle.map(|scenario| (scenario, start(scenario))).collect();
        for scenario in busy {
            println!("==> {}", scenario.name);
            // One that panics must not cost the others their place in the table.
            let ran = catch_unwind(|| (scenario.run)(scenario.cycles));
            record(scenario, ran, &mut table, &mut complaints);
        }
        for (scenario, running) in idle {
            println!("==> {}", scenario.name);
            let ran = running.join().unwrap_or_else(Err);
            record(scenario, ran, &mut table, &mut complaints);
        }
    });
    println!("\n{table}");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(target, Into::into);
    let written =
        fs::create_dir_all(&target).and_then(|()| fs::write(target.join("faults.md"), &table));
    if let Err(error) = written {
        println!("the table could not be written: {error}");
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Adds what came of a scenario to the table, and what was broken to the complaints.
fn record(
    scenario: &Scenario,
    ran: thread::Result<Ran>,
    table: &mut String,
    complaints: &mut Vec<String>,
) {
    let row = match ran {
        Err(_) => {
            let row = format!("| {} | panicked | | | | |", scenario.name);
            complaints.push(row.clone());
            row
        }
        Ok(Ran::Not(reason)) => format!("| {} | not run: {reason} | | | | |", scenario.name),
        Ok(Ran::Through(cycles, verdict)) => {
            println!("{}", describe_latest(&verdict));
            if !verdict.breaches.is_empty() {
                let complaint = complaint(scenario.name, &verdict.breaches);
                println!("{complaint}");
                complaints.push(complaint);
            }
            line(scenario.name, cycles, &verdict)
        }
    };
    println!("{row}");
    let _written = writeln!(table, "{row}");
}

fn line(name: &str, cycles: usize, verdict: &Verdict) -> String {
    let Verdict {
        messages,
        lost,
        duplicates,
        late,
        ..
    } = verdict;
    format!("| {name} | {cycles} | {messages} | {lost} | {duplicates} | {late} |")
}

fn describe_latest(verdict: &Verdict) -> String {
    match verdict.latest {
        None => "no message had a time to keep".to_owned(),
        Some(Lateness {
            late_ms,
            stalled_ms,
        }) => format!(
            "the latest message was sent {late_ms} ms after its time; the machine stood still for {stalled_ms} ms of it"
        ),
    }
}

fn complaint(name: &str, breaches: &[String]) -> String {
    let shown = breaches.len().min(20);
    format!(
        "{name}: {} promises broken, among them:\n{}",
        breaches.len(),
        breaches[..shown].join("\n")
    )
}
