//! The program: reads the configuration, builds the rooms, starts and stops them; and the command line.
//!
//! What belongs here: configuration ([`config`]), the command line ([`cli`], [`commands`]), wiring and signals
//! ([`serve`], [`carriers`], [`rules`], [`follower`], [`outside`]), logs and metrics' plumbing ([`telemetry`]).
//!
//! What never enters: a rule of the service.

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

/// Returns memory to the system and wastes less of it than the C library's under many small requests.
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
