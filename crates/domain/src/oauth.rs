//! OAuth: how an AI client is granted a part of what an account may do, and what proves that it was.
//!
//! Clients are public: they keep no secret of their own. What takes its place is a proof that whoever redeems a code is
//! whoever asked for it ([`Challenge`], [`Verifier`]), an address that was registered before and is compared letter by
//! letter ([`RedirectUri`]), and tokens that work once and betray their thief ([`Grant`]).

mod client;
mod grant;
mod pkce;
mod redirect;
mod refresh;
mod scope;

pub use client::{
    ClientIdUrl, ClientIdUrlError, ClientName, ClientProblem, ClientRecord, MAX_CLIENT_ID_BYTES,
    MAX_REDIRECTS, read_client,
};
pub use grant::{
    AuthorizationRequest, CodeProof, CodeVerdict, Grant, GrantRefusal, Granted, TokenKind,
    same_resource,
};
pub use pkce::{Challenge, NotAChallenge, NotAVerifier, Verifier};
pub use redirect::{MAX_REDIRECT_BYTES, RedirectUri, RedirectUriError};
pub use refresh::{
    REFRESH_GRACE, REFRESH_PREFIX, RefreshSecret, RefreshToken, RefreshVerdict, SALT_BYTES,
    Successor, SuccessorPair, SuccessorSalt, Used,
};
pub use scope::{SCOPES, ScopeError, parse_scopes};
