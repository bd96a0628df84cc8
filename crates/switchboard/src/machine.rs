//! The disk and the certificate of this machine.

mod certificate;

use std::path::{Path, PathBuf};

use domain::Timestamp;
use domain::ports::{DiskSpace, Machine, MachineState};
use store::DatabaseUrl;

use crate::config::Config;

pub(crate) struct ThisMachine {
    /// The folder of the database file, or the data folder.
    folder: PathBuf,
    certificate: Option<PathBuf>,
}

impl ThisMachine {
    pub(crate) fn new(config: &Config, database: &DatabaseUrl) -> Self {
        let folder = match database {
            DatabaseUrl::Sqlite(file) => file.parent().filter(|path| *path != Path::new("")),
            DatabaseUrl::Postgres(_) => Some(config.data_dir.as_path()),
        };
        Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            certificate: config.tls.cert.clone(),
        }
    }
}

impl Machine for ThisMachine {
    fn state(&self) -> MachineState {
        MachineState {
            disk: disk(&self.folder),
            certificate_expires_at: self.certificate.as_deref().and_then(expiry),
        }
    }
}

fn disk(folder: &Path) -> Option<DiskSpace> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(DiskSpace {
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        size_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
    })
}

/// When the first certificate of a PEM file expires.
fn expiry(file: &Path) -> Option<Timestamp> {
    certificate::expires_at(&std::fs::read(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_folder_has_a_size() {
        let disk = disk(Path::new(".")).expect("a folder");
        assert!(disk.size_bytes > 0 && disk.free_bytes <= disk.size_bytes);
        assert_eq!(super::disk(Path::new("/no such folder")), None);
    }
}
