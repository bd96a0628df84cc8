//! A temporary folder that goes away with its owner.

use crate::unique::unique_name;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A new, empty folder under the system's temporary folder (`TMPDIR` moves it), removed on drop
/// with all it holds.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates the folder; `label` tells people who find it what it was for.
    pub fn create(label: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(unique_name(label));
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("could not remove {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TempDir;
    use std::fs;

    #[test]
    fn the_folder_lives_as_long_as_its_owner() {
        let folder = TempDir::create("folder").expect("a temporary folder");
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").expect("a file inside");
        drop(folder);
        assert!(!path.exists());
    }
}
