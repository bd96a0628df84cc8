//! The memory and disk space that a server uses.

use anyhow::{Context, Result};
use std::path::Path;
use std::{fs, io};

/// Resident memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) now_kib: u64,
    pub(crate) peak_kib: u64,
}

/// Reads it from the system. The process must still run.
pub(crate) fn of_process(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&status).with_context(|| format!("no VmRSS and VmHWM in {path}"))
}

fn parse(status: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim_end().parse().ok()
    };
    Some(Memory {
        now_kib: field("VmRSS:")?,
        peak_kib: field("VmHWM:")?,
    })
}

/// The bytes of all files in a folder and below.
pub(crate) fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::{of_process, parse};

    #[test]
    fn both_fields_are_found() {
        let status = "Name:\tx\nVmPeak:\t 9000 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        let memory = parse(status).expect("both are there");
        assert_eq!((memory.now_kib, memory.peak_kib), (1024, 2048));
        assert!(parse("VmRSS:\t 1 kB\n").is_none(), "one is missing");
    }

    #[test]
    fn the_memory_of_this_process_is_found() {
        let memory = of_process(std::process::id()).expect("it is alive");
        assert!(memory.now_kib > 0 && memory.peak_kib >= memory.now_kib);
    }
}
