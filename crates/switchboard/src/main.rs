//! The program: reads the configuration, wires the crates together, starts and stops them; and the command line.
//!
//! It contains the configuration ([`config`]), the command line ([`cli`], [`commands`]), wiring and signals ([`serve`],
//! [`carriers`], [`follower`], [`outside`]), and the set-up of logs and metrics ([`telemetry`]).
//!
//! It contains no rules of the service.

mod carriers;
mod cli;
mod commands;
mod config;
mod first_start;
mod follower;
mod keys;
#[cfg(debug_assertions)]
mod kill;
mod mcp;
mod open_files;
mod outside;
mod private;
mod serve;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

/// Returns memory to the system, and wastes less of it under many small requests than the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    kill::arm();
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switchboard: {error:#}");
            ExitCode::FAILURE
        }
    }
}
