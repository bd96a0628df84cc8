//! OAuth: how a person allows an AI client to act for an account, and which tokens the client gets.
//!
//! Clients are public: they have no secret. Instead, a client proves that it redeems its own code ([`Challenge`],
//! [`Verifier`]), it is only sent back to a registered address ([`RedirectUri`]), and refresh tokens work once, so that
//! the use of a stolen one is noticed ([`Grant`]).

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
