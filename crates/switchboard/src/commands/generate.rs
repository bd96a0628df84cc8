//! `switchboard generate`: the man pages and the shell completions for packages, from the definition of the command line.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes `man/*.1` and `completions/` into the folder.
pub(super) fn run(folder: &Path) -> anyhow::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    for folder in [&man, &completions] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    clap_mangen::generate_to(Cli::command(), &man)
        .with_context(|| format!("cannot write the man pages to {}", man.display()))?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Cli::command(), "switchboard", &completions)
            .with_context(|| format!("cannot write the completions for {shell}"))?;
    }
    Ok(())
}
