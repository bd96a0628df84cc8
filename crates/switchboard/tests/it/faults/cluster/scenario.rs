//! Runs scenarios and prints the table of their results.

use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::{env, fs, thread};

use super::checker::{Lateness, Verdict};

pub(super) enum ScenarioResult {
    /// The number of cycles, and the result.
    Completed(usize, Verdict),
    /// Why the scenario cannot run here. This is not a success.
    NotRun(String),
}

/// A kind of fault.
pub(super) struct Scenario {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// The number of cycles in the long run.
    pub(super) cycles: usize,
    pub(super) run: fn(usize) -> ScenarioResult,
    /// It mostly waits, so the long run executes it in parallel with the others.
    pub(super) is_idle: bool,
}

/// Sets the number of cycles of a single scenario, to look for a rare failure.
const CYCLES_VARIABLE: &str = "SWITCHBOARD_TEST_CYCLES";

/// Runs a scenario for a few cycles; panics if a guarantee is violated.
pub(super) fn run_short(scenario: &Scenario, cycles: usize) {
    let cycles_given = env::var(CYCLES_VARIABLE).ok();
    let cycles_given = cycles_given.map(|cycles| cycles.parse().expect("a number of cycles"));
    match (scenario.run)(cycles_given.unwrap_or(cycles)) {
        ScenarioResult::NotRun(reason) => println!("NOT RUN: {}: {reason}", scenario.name),
        ScenarioResult::Completed(cycles, verdict) => {
            println!("{}", line(scenario.name, cycles, &verdict));
            println!("{}", describe_latest(&verdict));
            println!("{}", describe_repeated(&verdict));
            let violations = &verdict.violations;
            assert!(
                violations.is_empty(),
                "{}",
                describe_violations(scenario.name, violations)
            );
        }
    }
}

/// Limits the long run to scenarios whose names contain this.
const ONLY_VARIABLE: &str = "SWITCHBOARD_TEST_SCENARIO";

/// Runs all scenarios, prints the table, and panics if a guarantee is violated.
pub(super) fn run_long(scenarios: &'static [Scenario]) {
    let mut table =
        "| fault | cycles | messages | lost | duplicates | late |\n|---|---|---|---|---|---|\n"
            .to_owned();
    let mut failures = Vec::new();
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
            // The others must be in the table even if one panics.
            let result = catch_unwind(|| (scenario.run)(scenario.cycles));
            record(scenario, result, &mut table, &mut failures);
        }
        for (scenario, running) in idle {
            println!("==> {}", scenario.name);
            let result = running.join().unwrap_or_else(Err);
            record(scenario, result, &mut table, &mut failures);
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
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Adds the result of a scenario to the table, and its violations to the failures.
fn record(
    scenario: &Scenario,
    result: thread::Result<ScenarioResult>,
    table: &mut String,
    failures: &mut Vec<String>,
) {
    let row = match result {
        Err(_) => {
            let row = format!("| {} | panicked | | | | |", scenario.name);
            failures.push(row.clone());
            row
        }
        Ok(ScenarioResult::NotRun(reason)) => {
            format!("| {} | not run: {reason} | | | | |", scenario.name)
        }
        Ok(ScenarioResult::Completed(cycles, verdict)) => {
            println!("{}", describe_latest(&verdict));
            println!("{}", describe_repeated(&verdict));
            if !verdict.violations.is_empty() {
                let failure = describe_violations(scenario.name, &verdict.violations);
                println!("{failure}");
                failures.push(failure);
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
        None => "no scheduled message was measured".to_owned(),
        Some(Lateness {
            late_ms,
            stalled_ms,
        }) => format!(
            "the latest message was sent {late_ms} ms after its time; stalls of the machine were {stalled_ms} ms of that"
        ),
    }
}

fn describe_repeated(verdict: &Verdict) -> String {
    let repeated = verdict.repeated_receipts;
    format!("{repeated} receipts came again to SMPP clients")
}

fn describe_violations(name: &str, violations: &[String]) -> String {
    let shown = violations.len().min(20);
    format!(
        "{name}: {} violations, among them:\n{}",
        violations.len(),
        violations[..shown].join("\n")
    )
}
