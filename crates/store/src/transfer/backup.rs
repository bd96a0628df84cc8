//! Backups: copies a database into one file, and restores it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sqlite::SqliteEndpoint;
use super::{
    Checked, Endpoint, Hold, TransferError, Watch, check_level, check_tables, copy_everything,
    known_level, prepare,
};
use crate::seal::{Kind, Seal};
use crate::{DatabaseUrl, OpenError};

/// How many IDs may have been reserved after a backup. A larger number would slow down searches of the history.
const SPARE_IDS: i64 = 1_000_000;
/// How often the size of the file is read while the database writes it.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Writes a snapshot of a database into a new `SQLite` file while the service runs. The file appears under its name
/// when it is complete and on the disk.
pub async fn backup(
    from: &DatabaseUrl,
    to: &Path,
    replace: bool,
    watch: &mut dyn Watch,
) -> Result<(), TransferError> {
    let name = from.to_string();
    if to.exists() && !replace {
        return Err(TransferError::Exists(to.display().to_string()));
    }
    let mut source = Endpoint::find(from).await?;
    check_level(&mut source, &name).await?;
    check_tables(&mut source, &name).await?;
    if let Some(seal) = source.seal().await? {
        return Err(seal.refusal().into());
    }
    let draft = Draft::create(to)?;
    match &mut source {
        Endpoint::Sqlite(file) => copy_file(file, &draft.path, watch).await?,
        Endpoint::Postgres(_) => copy_tables(&mut source, &draft.path, watch).await?,
    }
    draft.publish(to, replace)
}

async fn copy_file(
    source: &mut SqliteEndpoint,
    to: &Path,
    watch: &mut dyn Watch,
) -> Result<(), TransferError> {
    watch.begins(source.size().await?);
    watch.table("the whole file");
    let mut written = 0;
    let mut report_progress = || {
        let size = fs::metadata(to).map_or(0, |file| file.len());
        watch.advances(size.saturating_sub(written));
        written = written.max(size);
    };
    {
        let mut copied = std::pin::pin!(source.copy_into(to));
        let mut tick = tokio::time::interval(PROGRESS_INTERVAL);
        loop {
            tokio::select! {
                copied = &mut copied => break copied?,
                _ = tick.tick() => report_progress(),
            }
        }
    }
    report_progress();
    let mut copy = SqliteEndpoint::reader(to).await?;
    match copy.fault().await? {
        None => Ok(()),
        Some(fault) => Err(TransferError::Unsound(fault)),
    }
}

async fn copy_tables(
    source: &mut Endpoint,
    to: &Path,
    watch: &mut dyn Watch,
) -> Result<(), TransferError> {
    source.begin(Hold::Snapshot).await?;
    let mut target = Endpoint::make(&DatabaseUrl::Sqlite(to.to_owned())).await?;
    // An incomplete file is deleted after a crash.
    let fast = "PRAGMA synchronous = OFF".to_owned();
    target.execute(fast).await?;
    copy_everything(source, &mut target, None, watch).await?;
    source.commit().await?;
    if let Endpoint::Sqlite(file) = &mut target {
        file.close_log().await?;
    }
    Ok(())
}

/// A file that is being written. It is deleted unless it is published.
struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Only its owner may read it, because it contains secrets.
    fn create(to: &Path) -> Result<Self, TransferError> {
        let mut path = to.as_os_str().to_owned();
        path.push(format!(".{}.unfinished", std::process::id()));
        let path = PathBuf::from(path);
        create_private(&path).map_err(|source| failed("creating", &path, source))?;
        Ok(Self { path })
    }

    fn publish(self, to: &Path, replace: bool) -> Result<(), TransferError> {
        let publish = || -> io::Result<()> {
            File::open(&self.path)?.sync_all()?;
            if replace {
                fs::rename(&self.path, to)?;
            } else {
                link_or_rename(&self.path, to)?;
            }
            let folder = to.parent().filter(|path| !path.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        publish().map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => TransferError::Exists(to.display().to_string()),
            _ => failed("writing", to, source),
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.path.as_os_str().to_owned();
            path.push(end);
            // Usually it does not exist.
            drop(fs::remove_file(path));
        }
    }
}

/// Unlike a rename, a link fails if the file exists already; but not every file system has links.
fn link_or_rename(draft: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(draft, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => {
            fs::rename(draft, to)
        }
        placed => placed,
    }
}

fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map(drop)
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> TransferError {
    TransferError::File {
        doing,
        path: path.display().to_string(),
        source,
    }
}

/// More IDs were used after the backup: callers know messages by them, and receivers know callbacks. They must not be
/// used again.
async fn skip_used_ids(target: &mut Endpoint) -> Result<(), TransferError> {
    let raise = format!("UPDATE id_block SET next = next + {SPARE_IDS}");
    target.execute(raise).await?;
    for (table, last) in target.sequences().await? {
        if table == "callback" {
            target.advance_sequence(&table, last + SPARE_IDS).await?;
        }
    }
    Ok(())
}

/// Restores a backup into an empty database, or continues an interrupted restore.
pub async fn restore(
    from: &Path,
    to: &DatabaseUrl,
    watch: &mut dyn Watch,
) -> Result<Vec<Checked>, TransferError> {
    let (from_name, to_name) = (from.display().to_string(), to.to_string());
    if !from.is_file() {
        return Err(TransferError::NoSource(from_name));
    }
    let mut source = Endpoint::Sqlite(SqliteEndpoint::reader(from).await?);
    let level = source.level().await?;
    if level > known_level() {
        return Err(TransferError::Open(OpenError::TooNew {
            found: level,
            known: known_level(),
        }));
    }
    // An older backup is migrated in a temporary copy.
    let mut draft = None;
    if level < known_level() {
        let copy = Draft::create(&std::env::temp_dir().join("switchboard-restore"))?;
        fs::copy(from, &copy.path).map_err(|source| failed("copying", from, source))?;
        source = Endpoint::make(&DatabaseUrl::Sqlite(copy.path.clone())).await?;
        draft = Some(copy);
    }
    check_tables(&mut source, &from_name).await?;
    if let Some(seal) = source.seal().await? {
        return Err(seal.refusal().into());
    }
    let mut target = Endpoint::make(to).await?;
    check_tables(&mut target, &to_name).await?;
    let restoring = Seal {
        kind: Kind::Restoring,
        created_us: source.created_us().await?,
        other: from_name,
    };
    let is_new = prepare(&mut target, &to_name, &restoring).await?;
    let mut known = if is_new {
        None
    } else {
        Some(Endpoint::find(to).await?)
    };
    source.begin(Hold::Snapshot).await?;
    let checked = copy_everything(&mut source, &mut target, known.as_mut(), watch).await?;
    source.commit().await?;
    skip_used_ids(&mut target).await?;
    target.set_seal(None).await?;
    drop((source, draft));
    Ok(checked)
}
