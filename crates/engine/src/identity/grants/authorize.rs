//! A client's question, checked before any person sees it.

use std::net::IpAddr;

use domain::oauth::{
    AuthorizationRequest, Challenge, ClientIdUrl, ClientRecord, MAX_CLIENT_ID_BYTES, RedirectUri,
    parse_scopes, read_client, same_resource,
};
use domain::ports::StoreError;
use url::Url;

use super::{Grants, REQUEST_LIFETIME};
use crate::identity::throttle::network;

/// The longest state that is given back, in bytes.
const MAX_STATE_BYTES: usize = 2048;

/// What a client may be told about its question: a code of the standard, and words.
pub(super) type Wrong = (&'static str, &'static str);

pub(super) const BUSY: Wrong = (
    "temporarily_unavailable",
    "Too many requests wait for an answer; try again shortly.",
);

/// The parameters of a question, as they came. One without a value counts as left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizeParams {
    /// Who asks.
    pub client_id: Option<String>,
    /// Where the answer shall go.
    pub redirect_uri: Option<String>,
    /// What kind of answer: only `code`.
    pub response_type: Option<String>,
    /// How the answer shall be given: only `query`.
    pub response_mode: Option<String>,
    /// What the client wants to find in the answer.
    pub state: Option<String>,
    /// What is asked for.
    pub scope: Option<String>,
    /// What the tokens shall be for.
    pub resource: Option<String>,
    /// What whoever redeems the code has to prove.
    pub code_challenge: Option<String>,
    /// By which method: only `S256`.
    pub code_challenge_method: Option<String>,
    /// Which of them stand there twice.
    pub repeated: Vec<&'static str>,
}

/// Why a question goes no further.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizeError {
    /// It is not certain who asks or where the answer would go, so nobody is sent anywhere: the person is told.
    #[error("{0}")]
    Shown(String),
    /// The client would be told, at its own address.
    #[error("{}", .0.description)]
    Wrong(Box<WrongQuestion>),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A question that its client put wrongly. Anybody can register a client and make it ask wrongly, so only those who know
/// the client are sent to it without a word (RFC 9700, section 4.11.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongQuestion {
    /// What the client is named by.
    pub client_id: String,
    /// A code of the standard.
    pub error: &'static str,
    /// In words.
    pub description: &'static str,
    /// Where the client is told.
    pub redirect: Url,
    /// Whether that is a program on the person's own machine.
    pub is_loopback: bool,
}

impl AuthorizeParams {
    /// Sorts parameters as they came, in whatever order. Those that are unknown are ignored.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut params = Self::default();
        for (name, value) in pairs {
            let Some((name, place)) = params.place(&name) else {
                continue;
            };
            if value.is_empty() {
                continue;
            }
            if place.is_none() {
                *place = Some(value);
            } else {
                params.repeated.push(name);
            }
        }
        params
    }

    fn place(&mut self, name: &str) -> Option<(&'static str, &mut Option<String>)> {
        Some(match name {
            "client_id" => ("client_id", &mut self.client_id),
            "redirect_uri" => ("redirect_uri", &mut self.redirect_uri),
            "response_type" => ("response_type", &mut self.response_type),
            "response_mode" => ("response_mode", &mut self.response_mode),
            "state" => ("state", &mut self.state),
            "scope" => ("scope", &mut self.scope),
            "resource" => ("resource", &mut self.resource),
            "code_challenge" => ("code_challenge", &mut self.code_challenge),
            "code_challenge_method" => ("code_challenge_method", &mut self.code_challenge_method),
            _ => return None,
        })
    }

    fn repeats(&self, name: &str) -> bool {
        self.repeated.contains(&name)
    }
}

impl Grants {
    /// Who asks and where the answer goes comes first: only then may anybody be sent there.
    pub(super) async fn check_request(
        &self,
        asker: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<AuthorizationRequest, AuthorizeError> {
        let client = self.find_client(asker, params).await?;
        let redirect = find_redirect(&client, params)?;
        let wrong = |wrong| self.wrong(&client.id, &redirect, params, wrong);
        check_form(params).map_err(wrong)?;
        let challenge = find_challenge(params).map_err(wrong)?;
        let resource = self.find_resource(params).map_err(wrong)?;
        let scopes = parse_scopes(params.scope.as_deref());
        let scopes = scopes.map_err(|_| {
            wrong((
                "invalid_scope",
                "The scope names something that cannot be granted here.",
            ))
        })?;
        Ok(AuthorizationRequest {
            client_id: client.id,
            client_name: client.name,
            redirect,
            challenge,
            state: params.state.clone(),
            scopes,
            resource,
            expires: self.clock.now() + REQUEST_LIFETIME,
        })
    }

    async fn find_client(
        &self,
        asker: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<ClientRecord, AuthorizeError> {
        if params.repeats("client_id") || params.repeats("redirect_uri") {
            return Err(shown("The request names its client or its address twice."));
        }
        let Some(id) = params.client_id.as_deref() else {
            return Err(shown("The request names no client (client_id)."));
        };
        if ClientIdUrl::is_meant(id) {
            return self.fetch_client(asker, id).await;
        }
        let found = self.find_registered(id).await?;
        found.ok_or_else(unknown_client)
    }

    pub(super) async fn find_registered(
        &self,
        id: &str,
    ) -> Result<Option<ClientRecord>, StoreError> {
        let is_id = id.len() <= MAX_CLIENT_ID_BYTES && id.bytes().all(|b| b.is_ascii_graphic());
        if !is_id {
            return Ok(None);
        }
        self.store.find_client(id, self.clock.now()).await
    }

    /// A client that nobody registered here says at its own address who it is.
    async fn fetch_client(&self, asker: IpAddr, id: &str) -> Result<ClientRecord, AuthorizeError> {
        let url = ClientIdUrl::parse(id).map_err(|error| shown(&error.to_string()))?;
        let document = self.documents.fetch(network(asker), &url).await;
        let document = document.map_err(|unusable| shown(&unusable.0))?;
        read_client(&document, id, true).map_err(|problem| shown(&problem.to_string()))
    }

    fn find_resource(&self, params: &AuthorizeParams) -> Result<String, Wrong> {
        const FOREIGN: Wrong = (
            "invalid_target",
            "Tokens are given for this service's own MCP server only.",
        );
        let ours = &self.settings.resource;
        let is_ours = |asked: &String| same_resource(ours, asked);
        if params.repeats("resource") || !params.resource.as_ref().is_none_or(is_ours) {
            return Err(FOREIGN);
        }
        Ok(ours.clone())
    }

    /// What the client is told: what is wrong, and the state by which it knows its question.
    pub(super) fn wrong(
        &self,
        client_id: &str,
        redirect: &RedirectUri,
        params: &AuthorizeParams,
        (error, description): Wrong,
    ) -> AuthorizeError {
        let state = params.state.as_deref();
        let state = state.filter(|state| state.len() <= MAX_STATE_BYTES);
        let state = state.filter(|_| !params.repeats("state"));
        let told = [("error", error), ("error_description", description)];
        let told = told.into_iter().chain(state.map(|state| ("state", state)));
        let told = told.chain([("iss", self.settings.issuer.as_str())]);
        AuthorizeError::Wrong(Box::new(WrongQuestion {
            client_id: client_id.to_owned(),
            error,
            description,
            redirect: redirect.with(told),
            is_loopback: redirect.is_loopback(),
        }))
    }
}

fn find_redirect(
    client: &ClientRecord,
    params: &AuthorizeParams,
) -> Result<RedirectUri, AuthorizeError> {
    let Some(asked) = params.redirect_uri.as_deref() else {
        return Err(shown(
            "The request does not say where to go back to (redirect_uri).",
        ));
    };
    client.redirect(asked).ok_or_else(|| {
        shown("The request's redirect_uri is none of those that its client registered.")
    })
}

fn check_form(params: &AuthorizeParams) -> Result<(), Wrong> {
    let invalid = |words| Err(("invalid_request", words));
    // More than one resource is a question of its own: see `find_resource`.
    if params.repeated.iter().any(|name| *name != "resource") {
        return invalid("A parameter stands there twice.");
    }
    let is_long = |state: &String| state.len() > MAX_STATE_BYTES;
    if params.state.as_ref().is_some_and(is_long) {
        return invalid("The state has more than 2048 bytes.");
    }
    match params.response_type.as_deref() {
        Some("code") => {}
        None => return invalid("response_type is missing; give code."),
        Some(_) => {
            return Err((
                "unsupported_response_type",
                "Only the response_type code is offered.",
            ));
        }
    }
    match params.response_mode.as_deref() {
        None | Some("query") => Ok(()),
        Some(_) => invalid("Only the response_mode query is offered."),
    }
}

fn find_challenge(params: &AuthorizeParams) -> Result<Challenge, Wrong> {
    let invalid = |words| ("invalid_request", words);
    let Some(challenge) = params.code_challenge.as_deref() else {
        return Err(invalid("PKCE is required: code_challenge is missing."));
    };
    if params.code_challenge_method.as_deref() != Some("S256") {
        return Err(invalid("PKCE is required with the method S256."));
    }
    Challenge::parse(challenge).map_err(|_| {
        invalid("code_challenge must be the SHA-256 of the verifier in base64url, 43 characters.")
    })
}

fn shown(words: &str) -> AuthorizeError {
    AuthorizeError::Shown(words.to_owned())
}

fn unknown_client() -> AuthorizeError {
    shown(
        "The client of this request is unknown, or was not used for too long; it has to register again.",
    )
}
