//! `bench start`: the time from the start of the process until it is ready, and its memory then, on a full database.

use super::{Options, fill, shown};
use crate::memory;
use crate::options::backends;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use testkit::{Backend, Server, http};

const STARTS: usize = 10;
const GOAL: Duration = Duration::from_millis(300);
const MEMORY_GOAL_KIB: u64 = 45 * 1024;

pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "Start of the process until `/health/ready` answers 200, {} messages in the database, {STARTS} starts; goals {} ms \
         and {} MiB.\n",
        options.messages,
        GOAL.as_millis(),
        MEMORY_GOAL_KIB / 1024
    );
    println!("| database | median | worst | memory |\n|---|--:|--:|--:|");
    for backend in backends(options.only) {
        measure(options, backend)?;
    }
    Ok(())
}

fn measure(options: &Options, backend: Backend) -> Result<()> {
    let name = crate::measure::Subject::Switchboard(backend).name();
    eprintln!("{name}: filling …");
    let mut server = Server::builder(&options.switchboard, backend).try_start()?;
    fill::fill(&mut server, options.messages)?;
    let (mut times, mut most_kib) = (Vec::with_capacity(STARTS), 0);
    for _ in 0..STARTS {
        server.terminate();
        let started = Instant::now();
        server.try_restart()?;
        let answer = http::request(server.addr(), "GET", "/health/ready", &[], b"")?;
        times.push(started.elapsed());
        ensure!(answer.status == 200, "not ready: {}", answer.text());
        most_kib = most_kib.max(memory::of_process(server.pid())?.now_kib);
    }
    times.sort_unstable();
    println!(
        "| {name} | {} | {} | {}.{} MiB |",
        shown(times[STARTS / 2]),
        shown(times[STARTS - 1]),
        most_kib / 1024,
        most_kib % 1024 * 10 / 1024
    );
    Ok(())
}
