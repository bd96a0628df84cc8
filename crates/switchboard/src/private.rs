//! The data folder is only for the user that the service runs as.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::Context as _;

/// Creates a folder for its owner alone. A folder that is open to others is closed if it contains only files of the
/// service. Otherwise somebody else may need it, and only a warning is logged.
pub(crate) fn folder(path: &Path) -> anyhow::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot create the folder {}", path.display()))?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode.trailing_zeros() >= 6 {
        return Ok(());
    }
    if is_only_ours(path) && fs::set_permissions(path, Permissions::from_mode(0o700)).is_ok() {
        tracing::info!(folder = %path.display(), "closed the data folder to other users");
        return Ok(());
    }
    tracing::warn!(
        folder = %path.display(), mode = %format!("{:o}", mode & 0o777),
        "other users can read the data folder, which also contains files that are not this service's; move them away and \
         run chmod 700 on it"
    );
    Ok(())
}

/// Whether the service created it: it belongs to the user of this process and contains only files of the service.
fn is_only_ours(path: &Path) -> bool {
    let is_own = |path: &Path| {
        let owner = fs::metadata(path).map(|folder| folder.uid());
        owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
    };
    let is_known = |name: &str| name.starts_with("switchboard.") || name.starts_with("service.key");
    let Ok(mut entries) = fs::read_dir(path) else {
        return false;
    };
    let mut has_database = false;
    let only_ours = entries.all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            has_database |= name == "switchboard.db" || name == "service.key";
            name.to_str().is_some_and(is_known)
        })
    });
    only_ours && has_database && is_own(path)
}

#[cfg(test)]
mod tests {
    use testkit::temp_dir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let folder = fs::metadata(path).expect("a folder");
        folder.permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_created_for_its_owner_only() {
        let home = temp_dir("private").expect("a temporary folder");
        let inner = home.path().join("a/b");
        folder(&inner).expect("created");
        assert_eq!((mode(&inner), mode(&home.path().join("a"))), (0o700, 0o700));
        folder(Path::new("")).expect("nothing to do");
    }

    #[test]
    fn only_a_folder_that_the_service_created_is_closed() {
        for (case, files, expected) in [
            (
                "the service's",
                &["switchboard.db", "switchboard.db-wal"][..],
                0o700,
            ),
            ("a key alone", &["service.key"], 0o700),
            (
                "somebody else's, too",
                &["switchboard.db", "notes.txt"],
                0o755,
            ),
            ("empty", &[], 0o755),
        ] {
            let home = temp_dir("private").expect("a temporary folder");
            let data = home.path().join("data");
            fs::create_dir(&data).expect("created");
            for file in files {
                fs::write(data.join(file), "").expect("written");
            }
            fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("set");
            folder(&data).expect("no error");
            assert_eq!(mode(&data), expected, "{case}");
        }
    }
}
