//! Reading and writing the files that commands are given.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context as _, bail};

/// The most that a list or a table may have; what is larger is no such file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The name that stands for standard input.
pub(super) const STDIN: &str = "-";

/// Reads a whole text; `-` reads standard input.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    let name = shown(path);
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

/// Writes a whole text to a file, or to standard output.
pub(super) fn write_text(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => unless_nobody_reads(io::stdout().lock().write_all(text.as_bytes())),
    }
}

/// Who pipes the output into `head` has seen enough: that is no failure.
pub(super) fn unless_nobody_reads(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// A path as messages name it.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
