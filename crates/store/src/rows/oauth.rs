//! Rows of OAuth clients, authorization requests and grants.

use domain::ids::GrantId;
use domain::oauth::{
    AuthorizationRequest, Challenge, ClientName, ClientRecord, Grant, RedirectUri, RefreshToken,
    Successor, SuccessorSalt, Used,
};
use domain::ports::GrantRecord;
use domain::{Email, Money, Permissions};

use super::{Corrupt, SqlRow, account_id, timestamp, utf8};

const SECOND_US: i64 = 1_000_000;
/// Tokens of clients are deleted this long after they expired or their grant was revoked.
pub(crate) const EXPIRED_RETENTION_US: i64 = 24 * 3600 * SECOND_US;
/// Access tokens are deleted this long after they were revoked.
pub(crate) const REVOKED_RETENTION_US: i64 = 3600 * SECOND_US;
/// Salts are deleted this long after their refresh token was used. That is longer than the grace period for
/// repetitions.
pub(crate) const SALT_RETENTION_US: i64 = 60 * SECOND_US;

/// Which grants of a person end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantsToEnd {
    All,
    /// Grants for accounts that the person no longer belongs to.
    OfLostAccounts,
}

/// The columns of a client.
pub(crate) struct ClientColumns {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirects: String,
}

impl ClientColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            name: row.column(1)?,
            redirects: row.column(2)?,
        })
    }

    pub(crate) fn record(self) -> Result<ClientRecord, Corrupt> {
        let redirects = self.redirects.split(' ').map(redirect);
        Ok(ClientRecord {
            name: name(&self.name)?,
            redirects: redirects.collect::<Result<_, _>>()?,
            id: self.id,
        })
    }
}

/// `oauth_client.redirects`.
pub(crate) fn redirects(client: &ClientRecord) -> String {
    let texts: Vec<&str> = client.redirects.iter().map(RedirectUri::as_str).collect();
    texts.join(" ")
}

/// The columns of a request, in the order in which both databases select them.
pub(crate) struct RequestColumns {
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect: String,
    pub(crate) challenge: Vec<u8>,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) scopes: String,
    pub(crate) resource: String,
    pub(crate) expires_us: i64,
}

impl RequestColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            client_id: row.column(0)?,
            client_name: row.column(1)?,
            redirect: row.column(2)?,
            challenge: row.column(3)?,
            state: row.column(4)?,
            scopes: row.column(5)?,
            resource: row.column(6)?,
            expires_us: row.column(7)?,
        })
    }

    pub(crate) fn request(self) -> Result<AuthorizationRequest, Corrupt> {
        Ok(AuthorizationRequest {
            client_id: self.client_id,
            client_name: name(&self.client_name)?,
            redirect: redirect(&self.redirect)?,
            challenge: challenge(&self.challenge)?,
            state: self.state.map(utf8).transpose()?,
            scopes: scopes(&self.scopes)?,
            resource: self.resource,
            expires: timestamp(self.expires_us)?,
        })
    }
}

/// The columns of a grant, in the order in which both databases select them.
pub(crate) struct GrantColumns {
    pub(crate) id: i64,
    pub(crate) account_id: i64,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect: String,
    pub(crate) challenge: Vec<u8>,
    pub(crate) scopes: String,
    pub(crate) code_expires_us: i64,
    pub(crate) code_used_us: Option<i64>,
    pub(crate) revoked_us: Option<i64>,
    pub(crate) created_us: i64,
}

impl GrantColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            account_id: row.column(1)?,
            client_id: row.column(2)?,
            client_name: row.column(3)?,
            redirect: row.column(4)?,
            challenge: row.column(5)?,
            scopes: row.column(6)?,
            code_expires_us: row.column(7)?,
            code_used_us: row.column(8)?,
            revoked_us: row.column(9)?,
            created_us: row.column(10)?,
        })
    }

    pub(crate) fn grant(self) -> Result<Grant, Corrupt> {
        Ok(Grant {
            id: grant_id(self.id)?,
            account: account_id(self.account_id)?,
            client_id: self.client_id,
            client_name: name(&self.client_name)?,
            redirect: self.redirect,
            challenge: challenge(&self.challenge)?,
            scopes: scopes(&self.scopes)?,
            code_expires: timestamp(self.code_expires_us)?,
            code_used: self.code_used_us.is_some(),
            created_at: timestamp(self.created_us)?,
            revoked: self.revoked_us.is_some(),
        })
    }
}

/// The columns of a client that may act for an account, in the order in which both databases select them.
pub(crate) struct ConnectedColumns {
    pub(crate) id: i64,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) scopes: String,
    pub(crate) created_us: i64,
    pub(crate) last_used_us: Option<i64>,
    pub(crate) granted_by: Option<String>,
    pub(crate) daily_cap_micros: Option<i64>,
}

impl ConnectedColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            client_id: row.column(1)?,
            client_name: row.column(2)?,
            scopes: row.column(3)?,
            created_us: row.column(4)?,
            last_used_us: row.column(5)?,
            granted_by: row.column(6)?,
            daily_cap_micros: row.column(7)?,
        })
    }

    pub(crate) fn record(self) -> Result<GrantRecord, Corrupt> {
        Ok(GrantRecord {
            id: grant_id(self.id)?,
            client_id: self.client_id,
            client_name: name(&self.client_name)?,
            scopes: scopes(&self.scopes)?,
            created_at: timestamp(self.created_us)?,
            last_used_at: self.last_used_us.map(timestamp).transpose()?,
            granted_by: self.granted_by.as_deref().map(email).transpose()?,
            daily_cap: self.daily_cap_micros.map(Money::from_micros),
        })
    }
}

/// Reads a grant's ID.
pub(crate) fn grant_id(number: i64) -> Result<GrantId, Corrupt> {
    GrantId::from_i64(number).ok_or(Corrupt("grant ID"))
}

/// The columns of a refresh token and of the access token that it was exchanged for, in the order in which both
/// databases select them. The last two are set while that pair is unused and not revoked.
pub(crate) struct RefreshColumns {
    pub(crate) id: i64,
    pub(crate) grant_id: Option<i64>,
    pub(crate) expires_us: Option<i64>,
    pub(crate) revoked_us: Option<i64>,
    pub(crate) successor_salt: Option<Vec<u8>>,
    pub(crate) successor_scopes: Option<String>,
    pub(crate) successor_expires_us: Option<i64>,
}

impl RefreshColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            grant_id: row.column(1)?,
            expires_us: row.column(2)?,
            revoked_us: row.column(3)?,
            successor_salt: row.column(4)?,
            successor_scopes: row.column(5)?,
            successor_expires_us: row.column(6)?,
        })
    }

    pub(crate) fn token(&self) -> Result<RefreshToken, Corrupt> {
        let successor = self.successor()?;
        let used = |at_us| {
            let at = timestamp(at_us)?;
            Ok(Used { at, successor })
        };
        Ok(RefreshToken {
            expires: timestamp(self.expires_us.ok_or(Corrupt("expiry"))?)?,
            used: self.revoked_us.map(used).transpose()?,
        })
    }

    fn successor(&self) -> Result<Option<Successor>, Corrupt> {
        let (Some(salt), Some(names), Some(expires_us)) = (
            &self.successor_salt,
            &self.successor_scopes,
            self.successor_expires_us,
        ) else {
            return Ok(None);
        };
        let salt = salt.as_slice().try_into().map_err(|_| Corrupt("salt"))?;
        Ok(Some(Successor {
            salt: SuccessorSalt::from_bytes(salt),
            scopes: scopes(names)?,
            access_expires: timestamp(expires_us)?,
        }))
    }
}

fn email(text: &str) -> Result<Email, Corrupt> {
    text.parse().map_err(|_| Corrupt("email"))
}

fn name(text: &str) -> Result<ClientName, Corrupt> {
    ClientName::parse(text).ok_or(Corrupt("client name"))
}

fn redirect(text: &str) -> Result<RedirectUri, Corrupt> {
    RedirectUri::parse(text).map_err(|_| Corrupt("redirect address"))
}

fn challenge(bytes: &[u8]) -> Result<Challenge, Corrupt> {
    let bytes = bytes.try_into().map_err(|_| Corrupt("challenge"))?;
    Ok(Challenge::from_bytes(bytes))
}

fn scopes(names: &str) -> Result<Permissions, Corrupt> {
    Permissions::from_names(names).map_err(|_| Corrupt("permission"))
}
