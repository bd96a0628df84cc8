//! The keys of the service: from the configuration, or from a file in the data folder that the first start creates.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::slice;

use anyhow::Context as _;
use domain::encryption::KEY_BYTES;
use domain::{KeyRing, ServiceKey};
use store::{DatabaseUrl, KeyRetention};

use crate::config::{Config, parse_keys};

/// The file in the data folder: one key per line, the newest first.
const FILE_NAME: &str = "service.key";

pub(crate) struct Keys {
    pub(crate) ring: KeyRing,
    pub(crate) storage: KeyRetention,
    /// The key file, if this process has just created it.
    created: Option<PathBuf>,
}

impl Keys {
    /// Deletes the key file that was just created: the database has another key.
    pub(crate) fn discard(&self) {
        if let Some(path) = &self.created
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!(file = %path.display(), %error, "cannot remove an unused key file");
        }
    }
}

pub(crate) fn file(config: &Config) -> PathBuf {
    config.data_dir.join(FILE_NAME)
}

/// Reads the keys, and creates one if there is none. The data folder must exist.
///
/// Nodes on PostgreSQL without a configured key share the key of the first node, which the database stores.
pub(crate) fn load(config: &Config, database: &DatabaseUrl) -> anyhow::Result<Keys> {
    let path = file(config);
    let (configured, mut former) = config.security.keys()?;
    let in_file = read(&path)?;
    if let Some(newest) = configured {
        former.extend(in_file);
        return Ok(Keys {
            ring: KeyRing::new(newest, former),
            storage: KeyRetention::Elsewhere,
            created: None,
        });
    }
    let storage = match database {
        DatabaseUrl::Sqlite(_) => KeyRetention::Elsewhere,
        DatabaseUrl::Postgres(_) => KeyRetention::InDatabase,
    };
    if let Some((newest, others)) = in_file.split_first() {
        former.extend(others.iter().cloned());
        return Ok(Keys {
            ring: KeyRing::new(newest.clone(), former),
            storage,
            created: None,
        });
    }
    if storage == KeyRetention::InDatabase {
        return Ok(Keys {
            ring: KeyRing::new(random_key()?, former),
            storage,
            created: None,
        });
    }
    let (key, created) = create(&path).with_context(|| {
        format!(
            "cannot create the service's key in {}; make the folder writable, or set security.key",
            path.display()
        )
    })?;
    if created {
        tracing::warn!(
            file = %path.display(), key = %key.id(),
            "created the key that encrypts secrets in the database; keep a copy of it apart from backups, and give it to \
             every other node"
        );
    }
    Ok(Keys {
        ring: KeyRing::new(key, former),
        storage,
        created: created.then_some(path),
    })
}

fn read(path: &Path) -> anyhow::Result<Vec<ServiceKey>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    parse_keys(&text).with_context(|| path.display().to_string())
}

/// Creates a key file. It is complete and on disk before it appears under its name. If another process was faster, its
/// key is read instead.
fn create(path: &Path) -> anyhow::Result<(ServiceKey, bool)> {
    let key = random_key()?;
    let draft = path.with_extension(format!("key.{}", std::process::id()));
    let written = write(&draft, slice::from_ref(&key)).and_then(|()| fs::hard_link(&draft, path));
    // It has its final name by now, or is not needed.
    drop(fs::remove_file(&draft));
    match written {
        Ok(()) => {
            let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
            fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok((key, true))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let first = read(path)?.into_iter().next();
            Ok((first.context("it is empty")?, false))
        }
        Err(error) => Err(error.into()),
    }
}

/// Copies the key file next to a backup. There is no such file if the key is in the configuration or in the database.
pub(crate) fn copy_to_backup(config: &Config, backup: &Path) -> anyhow::Result<Option<PathBuf>> {
    let keys = read(&file(config))?;
    if config.security.key.is_some() || keys.is_empty() {
        return Ok(None);
    }
    let copy = key_file_of(backup);
    write(&copy, &keys).with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(Some(copy))
}

/// Adds the keys next to a backup to those of the data folder.
pub(crate) fn import_from_backup(config: &Config, backup: &Path) -> anyhow::Result<()> {
    let path = file(config);
    let mut keys = read(&path)?;
    let before = keys.len();
    for key in read(&key_file_of(backup))? {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.len() == before {
        return Ok(());
    }
    write(&path, &keys).with_context(|| format!("cannot write {}", path.display()))
}

fn key_file_of(backup: &Path) -> PathBuf {
    let mut name = backup.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

fn random_key() -> anyhow::Result<ServiceKey> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).context("the operating system gives no random bytes")?;
    Ok(ServiceKey::new(bytes))
}

fn write(path: &Path, keys: &[ServiceKey]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    for key in keys {
        writeln!(file, "{}", key.reveal())?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use testkit::{TempDir, temp_dir};

    use super::*;
    use crate::config::{Secret, Security};

    fn config(folder: &TempDir, key: Option<&str>, former: &[&str]) -> Config {
        let mut config = Config::default();
        folder.path().clone_into(&mut config.data_dir);
        config.security = Security {
            key: key.map(|text| Secret(text.to_owned())),
            former_keys: former
                .iter()
                .map(|text| Secret((*text).to_owned()))
                .collect(),
        };
        config
    }

    fn sqlite() -> DatabaseUrl {
        DatabaseUrl::Sqlite("any".into())
    }

    fn text(byte: u8) -> String {
        ServiceKey::new([byte; KEY_BYTES]).reveal()
    }

    #[test]
    fn a_key_is_created_once_and_only_for_its_owner() {
        let folder = temp_dir("keys").expect("a temporary folder");
        let config = config(&folder, None, &[]);
        let first = load(&config, &sqlite()).expect("created");
        assert!(first.created.is_some());
        let mode = fs::metadata(file(&config)).expect("a file").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let second = load(&config, &sqlite()).expect("read");
        assert!(second.created.is_none() && second.ring == first.ring);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        first.discard();
        assert_ne!(load(&config, &sqlite()).expect("created").ring, first.ring);
    }

    #[test]
    fn the_configured_key_is_the_newest_and_all_others_decrypt() {
        let folder = temp_dir("keys").expect("a temporary folder");
        let ids = |config: &Config| {
            let keys = load(config, &sqlite()).expect("keys");
            assert!(keys.created.is_none());
            keys.ring.ids().map(|id| id.to_string()).collect::<Vec<_>>()
        };
        let id = |byte| ServiceKey::new([byte; KEY_BYTES]).id().to_string();
        let configured = config(&folder, Some(&text(1)), &[&text(2)]);
        assert_eq!(ids(&configured), [id(1), id(2)]);
        fs::write(file(&configured), format!("{}\n\n{}\n", text(3), text(4))).expect("written");
        assert_eq!(ids(&configured), [id(1), id(2), id(3), id(4)]);
        assert_eq!(
            ids(&config(&folder, None, &[&text(2)])),
            [id(3), id(2), id(4)]
        );
        let several = format!("{}\n{}", text(5), text(1));
        assert_eq!(
            ids(&config(&folder, Some(&several), &[])),
            [id(5), id(1), id(3), id(4)]
        );
    }

    #[test]
    fn no_key_file_is_created_for_postgresql() {
        let folder = temp_dir("keys").expect("a temporary folder");
        let server = "postgres://localhost/x".parse().expect("a URL");
        let unset = config(&folder, None, &[]);
        let keys = load(&unset, &server).expect("created");
        assert_eq!(keys.storage, KeyRetention::InDatabase);
        assert!(!file(&unset).exists());
        let set = load(&config(&folder, Some(&text(1)), &[]), &server).expect("read");
        assert_eq!(set.storage, KeyRetention::Elsewhere);
    }

    #[test]
    fn a_backup_gets_its_key_file() {
        let folders = ["from", "to"].map(|name| temp_dir(name).expect("a temporary folder"));
        let [from, to] = [&folders[0], &folders[1]].map(|folder| config(folder, None, &[]));
        let backup = folders[0].path().join("backup.db");
        assert_eq!(copy_to_backup(&from, &backup).expect("read"), None);
        let created = load(&from, &sqlite()).expect("created");
        let copy = copy_to_backup(&from, &backup)
            .expect("copied")
            .expect("a key");
        let permissions = fs::metadata(copy).expect("a file").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        for _ in 0..2 {
            import_from_backup(&to, &backup).expect("taken");
            assert_eq!(read(&file(&to)).expect("read").len(), 1);
        }
        assert!(load(&to, &sqlite()).expect("read").ring == created.ring);
        let configured = config(&folders[0], Some(&text(1)), &[]);
        assert_eq!(copy_to_backup(&configured, &backup).expect("read"), None);
    }

    #[test]
    fn an_invalid_key_file_is_named() {
        let folder = temp_dir("keys").expect("a temporary folder");
        let config = config(&folder, None, &[]);
        fs::write(file(&config), "hunter2").expect("written");
        let error = format!("{:#}", load(&config, &sqlite()).err().expect("refused"));
        assert!(error.contains("service.key: a key must be"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
