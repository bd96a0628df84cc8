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
mod machine;
mod mcp;
mod open_files;
mod outside;
mod private;
mod serve;
mod service_manager;
mod stored_plan;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

/// Returns memory to the system, and wastes less of it under many small requests than the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    kill::arm();
    // The allocator asks for huge pages, which stay in memory as long as any byte in them is used.
    #[cfg(target_os = "linux")]
    let _is_unsupported = rustix::thread::disable_transparent_huge_pages(true);
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switchboard: {error:#}");
            ExitCode::FAILURE
        }
    }
}
