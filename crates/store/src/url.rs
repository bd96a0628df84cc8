//! The URL that chooses a database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tokio_postgres::config;

/// The URL of a database: a file or a server. It is displayed without its password.
#[derive(Clone, PartialEq)]
pub enum DatabaseUrl {
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: a server, shared by any number of nodes.
    Postgres(Box<PostgresUrl>),
}

/// A server and its TLS settings.
#[derive(Clone, PartialEq)]
pub struct PostgresUrl {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: TlsSettings,
}

/// The TLS mode, with the names of libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SslMode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    const ALL: [Self; 5] = [
        Self::Disable,
        Self::Prefer,
        Self::Require,
        Self::VerifyCa,
        Self::VerifyFull,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `sslmode`, `sslrootcert`, `sslcert` and `sslkey` of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsSettings {
    pub(crate) mode: SslMode,
    /// Trusted authorities; `None` for the public ones.
    pub(crate) root: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl TlsSettings {
    /// Whether the certificate of the server must be signed by a trusted authority. As with libpq, `require` with
    /// authorities checks them.
    pub(crate) fn checks_chain(&self) -> bool {
        match self.mode {
            SslMode::VerifyCa | SslMode::VerifyFull => true,
            SslMode::Require => self.root.is_some(),
            SslMode::Disable | SslMode::Prefer => false,
        }
    }

    /// Separates the TLS parameters from a URL.
    fn split_from(url: &str) -> Result<(Self, String), DatabaseUrlError> {
        let Some((base, query)) = url.split_once('?') else {
            return Ok((Self::default(), url.to_owned()));
        };
        let mut tls = Self::default();
        let mut others = Vec::new();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            let file = || Some(PathBuf::from(&*value)).filter(|path| path.as_os_str() != "");
            match key {
                "sslmode" => {
                    let mode = SslMode::ALL.into_iter().find(|mode| mode.name() == value);
                    tls.mode = mode.ok_or(DatabaseUrlError::SslMode)?;
                }
                // libpq's name for the public authorities.
                "sslrootcert" => tls.root = file().filter(|path| path.as_os_str() != "system"),
                "sslcert" => tls.cert = file(),
                "sslkey" => tls.key = file(),
                _ => others.push(pair),
            }
        }
        if tls.cert.is_some() != tls.key.is_some() {
            return Err(DatabaseUrlError::ClientCertificate);
        }
        let rest = if others.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", others.join("&"))
        };
        Ok((tls, rest))
    }
}

impl PostgresUrl {
    fn parse(url: &str) -> Result<Self, DatabaseUrlError> {
        let (tls, rest) = TlsSettings::split_from(url)?;
        let mut config: tokio_postgres::Config =
            rest.parse().map_err(DatabaseUrlError::Postgres)?;
        config.ssl_mode(match tls.mode {
            SslMode::Disable => config::SslMode::Disable,
            SslMode::Prefer => config::SslMode::Prefer,
            _ => config::SslMode::Require,
        });
        Ok(Self { config, tls })
    }
}

/// Why a URL is not valid. It never contains the URL, which may have a password.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Another scheme, or none.
    #[error("the database URL must start with sqlite:, postgres:// or postgresql://")]
    Scheme,
    /// `sqlite:` without a file.
    #[error("the database URL names no file; write it like sqlite:data/switchboard.db")]
    NoFile,
    /// Readers and the writer are separate connections, and each would get its own in-memory database.
    #[error("a database in memory keeps nothing; name a file, like sqlite:data/switchboard.db")]
    InMemory,
    /// Not a `PostgreSQL` URL.
    #[error("the database URL is no valid PostgreSQL URL")]
    Postgres(#[source] tokio_postgres::Error),
    /// An unknown `sslmode`.
    #[error(
        "sslmode in the database URL must be disable, prefer, require, verify-ca or verify-full"
    )]
    SslMode,
    /// A client certificate without its key, or the reverse.
    #[error("sslcert and sslkey in the database URL belong together; give both or none")]
    ClientCertificate,
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(url: &str) -> Result<Self, DatabaseUrlError> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(Box::new(PostgresUrl::parse(url)?)));
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
            Self::Postgres(url) => f.write_str(&describe(&url.config)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

/// The URL of a server without user and password.
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
    use std::path::Path;

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
    fn tls_parameters_work_as_in_libpq() {
        let settings = |query: &str| {
            let url = format!("postgres://u:p%3F@db/x{query}").parse();
            let Ok(DatabaseUrl::Postgres(url)) = url else {
                panic!("{query}");
            };
            assert_eq!(url.config.get_dbname(), Some("x"), "{query}");
            (url.tls, url.config)
        };
        for (query, mode, asked, checks_chain) in [
            ("", SslMode::Prefer, config::SslMode::Prefer, false),
            (
                "?sslmode=disable",
                SslMode::Disable,
                config::SslMode::Disable,
                false,
            ),
            (
                "?sslmode=prefer",
                SslMode::Prefer,
                config::SslMode::Prefer,
                false,
            ),
            (
                "?sslmode=require",
                SslMode::Require,
                config::SslMode::Require,
                false,
            ),
            (
                "?sslmode=require&sslrootcert=ca",
                SslMode::Require,
                config::SslMode::Require,
                true,
            ),
            (
                "?sslmode=verify-ca",
                SslMode::VerifyCa,
                config::SslMode::Require,
                true,
            ),
            (
                "?sslmode=verify-full",
                SslMode::VerifyFull,
                config::SslMode::Require,
                true,
            ),
        ] {
            let (tls, config) = settings(query);
            assert_eq!((tls.mode, config.get_ssl_mode()), (mode, asked), "{query}");
            assert_eq!(tls.checks_chain(), checks_chain, "{query}");
        }
        let (tls, config) = settings(
            "?application_name=n&sslrootcert=%2Fa%20b%2Fca.pem&sslcert=c.pem&sslkey=c.key&connect_timeout=3",
        );
        assert_eq!(tls.root.as_deref(), Some(Path::new("/a b/ca.pem")));
        assert_eq!(tls.cert.as_deref(), Some(Path::new("c.pem")));
        assert_eq!(tls.key.as_deref(), Some(Path::new("c.key")));
        assert_eq!(config.get_application_name(), Some("n"));
        assert_eq!(settings("?sslrootcert=system").0.root, None);
    }

    #[test]
    fn an_invalid_url_is_refused_with_advice() {
        for (url, reason) in [
            ("", "must start with sqlite:"),
            ("data/x.db", "must start with sqlite:"),
            ("mysql://u:hidden@db/x", "must start with sqlite:"),
            ("sqlite:", "names no file"),
            ("sqlite://", "names no file"),
            ("sqlite::memory:", "in memory keeps nothing"),
            ("postgres://u:hidden@db:port/x", "no valid PostgreSQL URL"),
            ("postgres://u:hidden@db/x?sslmode=on", "verify-full"),
            (
                "postgres://u:hidden@db/x?sslmode=require&sslcert=a",
                "belong together",
            ),
            ("postgres://u:hidden@db/x?sslkey=a", "belong together"),
        ] {
            let error = url.parse::<DatabaseUrl>().expect_err(url).to_string();
            assert!(
                error.contains(reason) && !error.contains("hidden"),
                "{url}: {error}"
            );
        }
    }
}
