//! Reads and writes the files that commands are given.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context as _, bail};

/// A larger file is certainly not a price list or reference data.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(super) const STDIN: &str = "-";

/// Reads a whole text file; `-` reads standard input.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    let name = name_of(path);
    let mut bytes = Vec::new();
    let read = open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} is larger than {} MiB", MAX_BYTES >> 20);
    }
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name} is not UTF-8; save it as UTF-8"))
}

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Box::new(file))
}

pub(super) fn write_text(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => ignore_closed_pipe(io::stdout().lock().write_all(text.as_bytes())),
    }
}

/// A closed pipe is no failure: `head` has read enough.
pub(super) fn ignore_closed_pipe(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The name of a path in messages.
pub(super) fn name_of(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
