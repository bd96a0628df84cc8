//! What a person granted to a client, and who may have the tokens for it.

use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::client::ClientName;
use super::pkce::{Challenge, Verifier};
use super::redirect::RedirectUri;
use crate::access::permission::Permissions;
use crate::ids::{AccountId, GrantId};

/// What a client asked for, while a person has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRequest {
    /// Who asks.
    pub client_id: String,
    /// What it calls itself.
    pub client_name: ClientName,
    /// Where it is sent back to.
    pub redirect: RedirectUri,
    /// What whoever redeems the code has to prove.
    pub challenge: Challenge,
    /// What the client wants to find in the answer.
    pub state: Option<String>,
    /// What it asks for.
    pub scopes: Permissions,
    /// What the tokens shall be for.
    pub resource: String,
    /// Until when it can be answered.
    pub expires: Timestamp,
}

/// Which kind of token a row of the token list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Made by its owner.
    Api,
    /// Given to a client, for calls.
    Access,
    /// Given to a client, for new tokens and nothing else.
    Refresh,
}

impl TokenKind {
    /// The number in both databases.
    pub const fn number(self) -> i16 {
        match self {
            Self::Api => 0,
            Self::Access => 1,
            Self::Refresh => 2,
        }
    }

    /// What the token list calls one that was given to this client.
    pub fn name_for(self, client: &ClientName) -> String {
        match self {
            Self::Api => client.to_string(),
            Self::Access => format!("oauth:access:{client}"),
            Self::Refresh => format!("oauth:refresh:{client}"),
        }
    }
}

/// What a person granted: a code at first, then a family of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its ID.
    pub id: GrantId,
    /// Whose account.
    pub account: AccountId,
    /// To whom.
    pub client_id: String,
    /// What that calls itself.
    pub client_name: ClientName,
    /// Where it was sent back to.
    pub redirect: String,
    /// What whoever redeems the code has to prove.
    pub challenge: Challenge,
    /// What was granted.
    pub scopes: Permissions,
    /// Until when the code may be redeemed.
    pub code_expires: Timestamp,
    /// Whether it was.
    pub code_used: bool,
    /// When it was granted.
    pub created_at: Timestamp,
    /// Whether it is over.
    pub revoked: bool,
}

/// What a client shows to redeem a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProof {
    /// Who it says that it is.
    pub client_id: String,
    /// Where it says that it was sent back to, if it says so.
    pub redirect: Option<String>,
    /// The secret behind the challenge.
    pub verifier: Verifier,
}

/// Why a client gets no tokens. It reads one answer for all of them; the log may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Nothing is known by it.
    #[error("it is unknown")]
    Unknown,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// It was used before, so it has been stolen: all that it gave is revoked.
    #[error("it was used before; all that it gave is revoked")]
    Replayed,
    /// The grant is over.
    #[error("the grant was revoked")]
    Revoked,
    /// It was given to another client.
    #[error("it was given to another client")]
    OtherClient,
    /// It was sent to another address.
    #[error("it was sent to another address")]
    OtherRedirect,
    /// The proof is wrong.
    #[error("the verifier does not meet the challenge")]
    Proof,
    /// More is asked for than was granted.
    #[error("more is asked for than was granted")]
    Scope,
}

/// What becomes of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeVerdict {
    /// The client gets its tokens, and the code is used up.
    Give,
    /// The client gets nothing.
    Refuse(GrantRefusal),
    /// The client gets nothing, and what the code gave before is revoked.
    Betrayed,
}

/// Who was given tokens, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Whose account.
    pub account: AccountId,
    /// What the access token may do.
    pub scopes: Permissions,
    /// Until when it may be used.
    pub access_expires: Timestamp,
}

impl Grant {
    /// When all tokens of this grant are over, however often they were renewed.
    pub fn ends(&self, lifetime: SignedDuration) -> Timestamp {
        self.created_at
            .checked_add(lifetime)
            .unwrap_or(Timestamp::MAX)
    }

    /// Judges whoever brings the code. That it was used before counts first, whoever asks: it is in wrong hands then.
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

/// Whether two addresses name the same resource (RFC 8707): letter by letter, but for capitals in the scheme and the
/// host, which mean nothing, and a slash at the end, which clients add and drop.
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
    fn a_code_is_for_whom_it_was_made_and_works_once() {
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
    fn a_resource_is_this_one_or_another() {
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
