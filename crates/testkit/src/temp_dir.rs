//! Temporary folders.

use std::{io, process};

pub use tempfile::TempDir;

/// Creates an empty folder in the system's temporary folder (set `TMPDIR` to move it). It is removed on drop.
///
/// `label` and the process ID are part of the name. People see where a leftover folder comes from, and `stall`
/// recognizes the database servers of this process by it.
pub fn temp_dir(label: &str) -> io::Result<TempDir> {
    let prefix = format!("switchboard_{label}_{}_", process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir()
}

#[cfg(test)]
mod tests {
    use super::temp_dir;
    use std::{env, fs, process};

    #[test]
    fn a_folder_is_named_after_its_process_and_removed_on_drop() {
        let folder = temp_dir("folder").expect("a temporary folder");
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").expect("a file inside");
        assert_eq!(path.parent(), Some(env::temp_dir().as_path()));
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(name.contains(&format!("_{}_", process::id())), "{name}");
        drop(folder);
        assert!(!path.exists());
    }
}
