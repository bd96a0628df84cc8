//! The URL that chooses a database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which database: a file or a server. Shown without its password.
#[derive(Clone, PartialEq)]
pub enum DatabaseUrl {
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: a server, shared by any number of nodes.
    Postgres(Box<tokio_postgres::Config>),
}

/// Why a URL chooses no database. Never repeats the URL: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Some other scheme, or none.
    #[error("the database URL must start with sqlite:, postgres:// or postgresql://")]
    Scheme,
    /// `sqlite:` without a file.
    #[error("the database URL names no file; write it like sqlite:data/switchboard.db")]
    NoFile,
    /// Readers and the writer are separate connections: in memory, each would have a database of its own.
    #[error("a database in memory keeps nothing; name a file, like sqlite:data/switchboard.db")]
    InMemory,
    /// Not a `PostgreSQL` URL.
    #[error("the database URL is no valid PostgreSQL URL")]
    Postgres(#[source] tokio_postgres::Error),
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(url: &str) -> Result<Self, DatabaseUrlError> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let config = url.parse().map_err(DatabaseUrlError::Postgres)?;
            return Ok(Self::Postgres(Box::new(config)));
        }
        let path = url
            .strip_prefix("sqlite://")
            .or_else(|| url.strip_prefix("sqlite:"));
        match path {
            None => Err(DatabaseUrlError::Scheme),
            Some("") => Err(DatabaseUrlError::NoFile),
            Some(":memory:") => Err(DatabaseUrlError::InMemory),
            Some(path) => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => f.write_str(&describe(config)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

/// A server and its database as people name them, without user and password.
pub(crate) fn describe(config: &tokio_postgres::Config) -> String {
    use tokio_postgres::config::Host;
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let port = config.get_ports().get(at).or(config.get_ports().first());
        let port = port.copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let database = config.get_dbname().unwrap_or_default();
    format!("postgres://{hosts}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_chooses_the_database() {
        for (url, shown) in [
            ("sqlite:data/x.db", "sqlite:data/x.db"),
            ("sqlite:/var/x.db", "sqlite:/var/x.db"),
            ("sqlite:///var/x.db", "sqlite:/var/x.db"),
            ("postgres://u@db/x", "postgres://db:5432/x"),
            ("postgresql://u:hidden@db:1/x", "postgres://db:1/x"),
            ("postgres://u:hidden@a:1,b:2/x", "postgres://a:1,b:2/x"),
        ] {
            let parsed: DatabaseUrl = url.parse().expect(url);
            assert_eq!(parsed.to_string(), shown, "{url}");
            assert!(!format!("{parsed:?}").contains("hidden"), "{url}");
        }
    }

    #[test]
    fn what_names_no_database_says_how_to_name_one() {
        for (url, reason) in [
            ("", "must start with sqlite:"),
            ("data/x.db", "must start with sqlite:"),
            ("mysql://u:hidden@db/x", "must start with sqlite:"),
            ("sqlite:", "names no file"),
            ("sqlite://", "names no file"),
            ("sqlite::memory:", "in memory keeps nothing"),
            ("postgres://u:hidden@db:port/x", "no valid PostgreSQL URL"),
        ] {
            let error = url.parse::<DatabaseUrl>().expect_err(url).to_string();
            assert!(
                error.contains(reason) && !error.contains("hidden"),
                "{url}: {error}"
            );
        }
    }
}
