//! Refresh tokens: who gets new tokens for one, and how the new tokens are derived.
//!
//! Two processes of one client often refresh at the same moment. Both get the same new pair, although only hashes of
//! tokens are stored: the new pair is derived from the old refresh token and a random salt, which is stored. Neither
//! the salt nor the old token alone is enough to derive it.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::grant::{Grant, GrantRefusal};
use crate::access::permission::Permissions;
use crate::access::token::{PREFIX, TokenSecret};
use crate::encryption::derive;

/// How long a client may repeat a refresh and get the same tokens.
pub const REFRESH_GRACE: SignedDuration = SignedDuration::from_secs(10);
/// The prefix tells refresh tokens from access tokens.
pub const REFRESH_PREFIX: &str = "sbr_";
pub const SALT_BYTES: usize = 16;

const ACCESS_INFO: &[u8] = b"switchboard oauth access token";
const REFRESH_INFO: &[u8] = b"switchboard oauth refresh token";

/// Random bytes; new tokens are derived from them and the refresh token that is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SuccessorSalt([u8; SALT_BYTES]);

impl SuccessorSalt {
    pub const fn from_bytes(bytes: [u8; SALT_BYTES]) -> Self {
        Self(bytes)
    }

    /// The stored form.
    pub const fn as_bytes(&self) -> &[u8; SALT_BYTES] {
        &self.0
    }
}

impl fmt::Debug for SuccessorSalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuccessorSalt(…)")
    }
}

/// An access token and a refresh token in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessorPair {
    pub access: TokenSecret,
    pub refresh: RefreshSecret,
}

/// A refresh token in plain text; its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshSecret(String);

impl RefreshSecret {
    pub fn from_seed(seed: &[u8; crate::access::token::SEED_BYTES]) -> Self {
        let letters = TokenSecret::from_seed(seed);
        Self(format!(
            "{REFRESH_PREFIX}{}",
            &letters.reveal()[PREFIX.len()..]
        ))
    }

    /// The token in plain text, for the client.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RefreshSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefreshSecret(…)")
    }
}

impl SuccessorPair {
    /// The pair that this refresh token is exchanged for. The same salt always gives the same pair.
    pub fn derive(refresh: &str, salt: &SuccessorSalt) -> Self {
        let seed = |info| derive(salt.as_bytes(), refresh.as_bytes(), info);
        Self {
            access: TokenSecret::from_seed(&seed(ACCESS_INFO)),
            refresh: RefreshSecret::from_seed(&seed(REFRESH_INFO)),
        }
    }
}

/// A refresh token, as one transaction sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshToken {
    pub expires: Timestamp,
    /// Set if it was used or revoked.
    pub used: Option<Used>,
}

/// The use or the revocation of a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    pub at: Timestamp,
    /// The tokens it was exchanged for, as long as both are unused and not revoked.
    pub successor: Option<Successor>,
}

/// The tokens that a refresh token was exchanged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    /// The salt that they were derived with.
    pub salt: SuccessorSalt,
    pub scopes: Permissions,
    pub access_expires: Timestamp,
}

/// The decision about a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshVerdict {
    /// Issue new tokens with these permissions; the refresh token is used up.
    Give(Permissions),
    /// The client repeated its request and gets the same tokens again.
    Repeat(Successor),
    Refuse(GrantRefusal),
    /// Refuse, and revoke all tokens of the grant.
    Betrayed,
}

impl Grant {
    /// Decides about a refresh token of this grant. If it was used before, it or its successor was stolen, unless the
    /// client repeats its request within the grace period. No token lives longer than `lifetime` after the grant.
    pub fn judge_refresh(
        &self,
        token: RefreshToken,
        client_id: &str,
        asked: Option<Permissions>,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> RefreshVerdict {
        use GrantRefusal as No;
        if self.client_id != client_id {
            return RefreshVerdict::Refuse(No::OtherClient);
        }
        if self.revoked {
            return RefreshVerdict::Refuse(No::Revoked);
        }
        let scopes = asked.unwrap_or(self.scopes);
        if let Some(used) = token.used {
            return match used.repeated(scopes, now) {
                Some(successor) => RefreshVerdict::Repeat(successor),
                None => RefreshVerdict::Betrayed,
            };
        }
        if token.expires <= now || self.ends(lifetime) <= now {
            return RefreshVerdict::Refuse(No::Expired);
        }
        if !scopes.iter().all(|scope| self.scopes.contains(scope)) {
            return RefreshVerdict::Refuse(No::Scope);
        }
        RefreshVerdict::Give(scopes)
    }
}

impl Used {
    /// The tokens for a repeated request. Clocks of nodes differ, so the grace period applies in both directions.
    fn repeated(self, scopes: Permissions, now: Timestamp) -> Option<Successor> {
        let is_soon = now.duration_since(self.at).abs() <= REFRESH_GRACE;
        self.successor
            .filter(|successor| is_soon && successor.scopes == scopes)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::grant::tests::{at, grant};
    use super::*;
    use crate::access::permission::Permission;
    use crate::access::token::TokenHash;

    const LIFETIME: SignedDuration = SignedDuration::from_secs(1000);

    fn rates() -> Permissions {
        [Permission::SmsRates].into_iter().collect()
    }

    fn salt(byte: u8) -> SuccessorSalt {
        SuccessorSalt::from_bytes([byte; SALT_BYTES])
    }

    fn successor(scopes: Permissions) -> Successor {
        Successor {
            salt: salt(7),
            scopes,
            access_expires: at(3600),
        }
    }

    fn live() -> RefreshToken {
        RefreshToken {
            expires: at(100),
            used: None,
        }
    }

    fn used(successor: Option<Successor>) -> RefreshToken {
        let used = Used {
            at: at(50),
            successor,
        };
        RefreshToken {
            used: Some(used),
            ..live()
        }
    }

    fn more() -> Permissions {
        [Permission::SmsRates, Permission::HlrLookup]
            .into_iter()
            .collect()
    }

    /// Decides about a token of `client`, of `other` and of a revoked grant.
    fn check(
        name: &str,
        token: RefreshToken,
        asked: Option<Permissions>,
        second: i64,
        expected: RefreshVerdict,
    ) {
        let judge =
            |grant: Grant, client| grant.judge_refresh(token, client, asked, LIFETIME, at(second));
        assert_eq!(judge(grant(), "client"), expected, "{name}");
        let other = RefreshVerdict::Refuse(GrantRefusal::OtherClient);
        assert_eq!(judge(grant(), "other"), other, "{name}");
        let over = Grant {
            revoked: true,
            ..grant()
        };
        let revoked = RefreshVerdict::Refuse(GrantRefusal::Revoked);
        assert_eq!(judge(over, "client"), revoked, "{name}");
    }

    #[test]
    fn a_refresh_token_works_until_it_expires_and_within_its_scopes() {
        use GrantRefusal::{Expired, Scope};
        use RefreshVerdict::{Give, Refuse};
        let (all, rates) = (grant().scopes, rates());
        let long = RefreshToken {
            expires: at(9999),
            ..live()
        };
        for (name, token, asked, second, expected) in [
            ("good", live(), None, 99, Give(all)),
            ("for less", live(), Some(rates), 99, Give(rates)),
            ("for more", live(), Some(more()), 99, Refuse(Scope)),
            ("too late", live(), None, 100, Refuse(Expired)),
            ("just before the grant's end", long, None, 999, Give(all)),
            ("after the grant's end", long, None, 1000, Refuse(Expired)),
        ] {
            check(name, token, asked, second, expected);
        }
    }

    #[test]
    fn reuse_of_a_refresh_token_revokes_the_grant_unless_the_request_is_repeated() {
        use RefreshVerdict::{Betrayed, Repeat};
        let (all, rates) = (grant().scopes, rates());
        let (spent, fresh) = (used(None), used(Some(successor(all))));
        let fresh_rates = used(Some(successor(rates)));
        let (same, same_rates) = (Repeat(successor(all)), Repeat(successor(rates)));
        for (name, token, asked, second, expected) in [
            ("used", spent, None, 51, Betrayed),
            ("used, and late", spent, None, 101, Betrayed),
            ("at the same moment", fresh, None, 50, same),
            ("all of it named", fresh, Some(all), 51, same),
            ("by a clock behind", fresh, None, 40, same),
            ("by a clock far behind", fresh, None, 39, Betrayed),
            ("at the end of the grace", fresh, None, 60, same),
            ("after the grace", fresh, None, 61, Betrayed),
            ("again, for less", fresh, Some(rates), 51, Betrayed),
            ("again, for more", fresh, Some(more()), 51, Betrayed),
            ("less, again", fresh_rates, Some(rates), 51, same_rates),
            ("less, then all", fresh_rates, None, 51, Betrayed),
        ] {
            check(name, token, asked, second, expected);
        }
    }

    #[test]
    fn a_pair_is_the_same_for_the_same_token_and_salt_alone() {
        let first = SuccessorPair::derive("sbr_one", &salt(1));
        assert_eq!(SuccessorPair::derive("sbr_one", &salt(1)), first);
        assert!(TokenSecret::parse(first.access.reveal()).is_some());
        assert!(first.refresh.reveal().starts_with(REFRESH_PREFIX));
        let letters = |pair: &SuccessorPair| {
            let access = pair.access.reveal()[PREFIX.len()..].to_owned();
            [
                access,
                pair.refresh.reveal()[REFRESH_PREFIX.len()..].to_owned(),
            ]
        };
        let [access, refresh] = letters(&first);
        assert_ne!(access, refresh, "one does not tell the other");
        for (token, salt) in [("sbr_one", salt(2)), ("sbr_two", salt(1))] {
            let other = SuccessorPair::derive(token, &salt);
            let others = letters(&other);
            assert!(!others.contains(&access) && !others.contains(&refresh));
        }
        // The stored hash of the old token is not enough.
        let hash = TokenHash::from_secret("sbr_one").as_bytes().iter().fold(
            String::new(),
            |mut hex, byte| {
                write!(hex, "{byte:02x}").expect("a text takes everything");
                hex
            },
        );
        assert_ne!(SuccessorPair::derive(&hash, &salt(1)), first);
        assert!(!format!("{first:?} {:?}", salt(1)).contains(&refresh));
    }
}
