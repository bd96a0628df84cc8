//! What a person allowed a client to do, and who may get tokens for it.

use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::client::ClientName;
use super::pkce::{Challenge, Verifier};
use super::redirect::RedirectUri;
use crate::access::permission::Permissions;
use crate::ids::{AccountId, GrantId};

/// A client's request that a person has not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRequest {
    pub client_id: String,
    pub client_name: ClientName,
    pub redirect: RedirectUri,
    /// Checked when the code is redeemed.
    pub challenge: Challenge,
    /// Returned to the client unchanged.
    pub state: Option<String>,
    pub scopes: Permissions,
    /// The resource that the tokens are for.
    pub resource: String,
    pub expires: Timestamp,
}

/// The kind of a row in the token list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Created by its owner.
    Api,
    /// Issued to a client, for calls.
    Access,
    /// Issued to a client, only to get new tokens.
    Refresh,
}

impl TokenKind {
    /// The stored form.
    pub const fn number(self) -> i16 {
        match self {
            Self::Api => 0,
            Self::Access => 1,
            Self::Refresh => 2,
        }
    }

    /// The name in the token list of a token issued to this client.
    pub fn name_for(self, client: &ClientName) -> String {
        match self {
            Self::Api => client.to_string(),
            Self::Access => format!("oauth:access:{client}"),
            Self::Refresh => format!("oauth:refresh:{client}"),
        }
    }
}

/// A grant: first it has a code, then a family of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: GrantId,
    pub account: AccountId,
    pub client_id: String,
    pub client_name: ClientName,
    pub redirect: String,
    /// Checked when the code is redeemed.
    pub challenge: Challenge,
    pub scopes: Permissions,
    pub code_expires: Timestamp,
    pub code_used: bool,
    pub created_at: Timestamp,
    pub revoked: bool,
}

/// What a client sends to redeem a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProof {
    pub client_id: String,
    pub redirect: Option<String>,
    /// The secret behind the challenge.
    pub verifier: Verifier,
}

/// Why a client gets no tokens. The client gets the same answer in all cases; only the log has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    #[error("it is unknown")]
    Unknown,
    #[error("it has expired")]
    Expired,
    /// It was used before, so it may be stolen: all tokens issued for it are revoked.
    #[error("it was used before; all that it gave is revoked")]
    Replayed,
    #[error("the grant was revoked")]
    Revoked,
    #[error("it was given to another client")]
    OtherClient,
    #[error("it was sent to another address")]
    OtherRedirect,
    #[error("the verifier does not meet the challenge")]
    Proof,
    #[error("more is asked for than was granted")]
    Scope,
}

/// The decision about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeVerdict {
    /// Issue the tokens; the code is used up.
    Give,
    Refuse(GrantRefusal),
    /// Refuse, and revoke the tokens that were issued for the code before.
    Betrayed,
}

/// The tokens issued to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub account: AccountId,
    pub scopes: Permissions,
    pub access_expires: Timestamp,
}

impl Grant {
    /// When the last token of this grant expires, however often tokens are refreshed.
    pub fn ends(&self, lifetime: SignedDuration) -> Timestamp {
        self.created_at
            .checked_add(lifetime)
            .unwrap_or(Timestamp::MAX)
    }

    /// Decides about a code. Reuse is checked first for every client: it means that the code was stolen.
    pub fn judge_code(&self, proof: &CodeProof, now: Timestamp) -> CodeVerdict {
        use GrantRefusal as No;
        let other_redirect = || {
            proof
                .redirect
                .as_ref()
                .is_some_and(|at| *at != self.redirect)
        };
        if self.code_used {
            return CodeVerdict::Betrayed;
        }
        if self.revoked {
            return CodeVerdict::Refuse(No::Revoked);
        }
        if self.code_expires <= now {
            return CodeVerdict::Refuse(No::Expired);
        }
        if self.client_id != proof.client_id {
            return CodeVerdict::Refuse(No::OtherClient);
        }
        if other_redirect() {
            return CodeVerdict::Refuse(No::OtherRedirect);
        }
        if !self.challenge.is_met_by(&proof.verifier) {
            return CodeVerdict::Refuse(No::Proof);
        }
        CodeVerdict::Give
    }
}

/// Whether two URLs name the same resource (RFC 8707). The case of scheme and host and a trailing slash are ignored:
/// clients add and drop them.
pub fn same_resource(ours: &str, asked: &str) -> bool {
    let plain = |text: &str| {
        let url = Url::parse(text).ok()?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        (is_plain && url.fragment().is_none() && url.query().is_none())
            .then(|| url.as_str().trim_end_matches('/').to_owned())
    };
    plain(ours).is_some_and(|ours| plain(asked) == Some(ours))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::access::permission::Permission;

    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    pub(in crate::oauth) fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    pub(in crate::oauth) fn grant() -> Grant {
        Grant {
            id: GrantId::new(1).expect("an ID"),
            account: AccountId::new(1).expect("an ID"),
            client_id: "client".to_owned(),
            client_name: ClientName::parse("Client").expect("a name"),
            redirect: "https://a.example/cb".to_owned(),
            challenge: Challenge::parse(CHALLENGE).expect("a challenge"),
            scopes: [Permission::SmsRates, Permission::SmsSend]
                .into_iter()
                .collect(),
            code_expires: at(60),
            code_used: false,
            created_at: at(0),
            revoked: false,
        }
    }

    fn proof() -> CodeProof {
        CodeProof {
            client_id: "client".to_owned(),
            redirect: Some("https://a.example/cb".to_owned()),
            verifier: Verifier::parse(VERIFIER).expect("a verifier"),
        }
    }

    #[test]
    fn a_code_works_once_and_only_for_its_client() {
        use GrantRefusal as No;
        let good = CodeVerdict::Give;
        let no = CodeVerdict::Refuse;
        let other = |text: &str| Verifier::parse(&text.repeat(43)).expect("a verifier");
        for (name, grant, proof, second, verdict) in [
            ("good", grant(), proof(), 59, good),
            (
                "no redirect",
                grant(),
                CodeProof {
                    redirect: None,
                    ..proof()
                },
                0,
                good,
            ),
            ("too late", grant(), proof(), 60, no(No::Expired)),
            (
                "used",
                Grant {
                    code_used: true,
                    ..grant()
                },
                proof(),
                1,
                CodeVerdict::Betrayed,
            ),
            (
                "used, and late",
                Grant {
                    code_used: true,
                    ..grant()
                },
                proof(),
                99,
                CodeVerdict::Betrayed,
            ),
            (
                "revoked",
                Grant {
                    revoked: true,
                    ..grant()
                },
                proof(),
                1,
                no(No::Revoked),
            ),
            (
                "other client",
                grant(),
                CodeProof {
                    client_id: "Client".into(),
                    ..proof()
                },
                1,
                no(No::OtherClient),
            ),
            (
                "other redirect",
                grant(),
                CodeProof {
                    redirect: Some("https://a.example/cb/".into()),
                    ..proof()
                },
                1,
                no(No::OtherRedirect),
            ),
            (
                "wrong proof",
                grant(),
                CodeProof {
                    verifier: other("a"),
                    ..proof()
                },
                1,
                no(No::Proof),
            ),
        ] {
            assert_eq!(grant.judge_code(&proof, at(second)), verdict, "{name}");
        }
    }

    #[test]
    fn resources_are_compared() {
        const OURS: &str = "https://mcp.example/mcp";
        for (asked, same) in [
            (OURS, true),
            ("https://mcp.example/mcp/", true),
            ("HTTPS://MCP.example/mcp", true),
            ("https://mcp.example:443/mcp", true),
            ("https://mcp.example", false),
            ("https://mcp.example/MCP", false),
            ("https://mcp.example/mcp/x", false),
            ("https://mcp.example/mcp?x", false),
            ("https://mcp.example/mcp#x", false),
            ("https://a@mcp.example/mcp", false),
            ("http://mcp.example/mcp", false),
            ("https://mcp.example.evil.example/mcp", false),
            ("https://evil.example/mcp", false),
            ("mcp", false),
            ("", false),
        ] {
            assert_eq!(same_resource(OURS, asked), same, "{asked}");
        }
    }
}
