//! Checks an authorization request before a person sees it.

use std::net::IpAddr;

use domain::oauth::{
    AuthorizationRequest, Challenge, ClientIdUrl, ClientRecord, MAX_CLIENT_ID_BYTES, RedirectUri,
    parse_scopes, read_client, same_resource,
};
use domain::ports::StoreError;
use url::Url;

use super::{Grants, REQUEST_LIFETIME};
use crate::identity::throttle::network;

/// Maximum length of the `state` that is returned.
const MAX_STATE_BYTES: usize = 2048;

/// An OAuth error code and its description.
pub(super) type RequestError = (&'static str, &'static str);

pub(super) const BUSY: RequestError = (
    "temporarily_unavailable",
    "Too many requests wait for an answer; try again shortly.",
);

/// The parameters of an authorization request, unchecked. A parameter without a value counts as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizeParams {
    pub client_id: Option<String>,
    /// Where the answer goes.
    pub redirect_uri: Option<String>,
    /// Only `code` is offered.
    pub response_type: Option<String>,
    /// Only `query` is offered.
    pub response_mode: Option<String>,
    /// Returned to the client unchanged.
    pub state: Option<String>,
    pub scope: Option<String>,
    /// What the tokens will be for.
    pub resource: Option<String>,
    /// The PKCE challenge.
    pub code_challenge: Option<String>,
    /// Only `S256` is offered.
    pub code_challenge_method: Option<String>,
    /// Whether a page may be shown.
    pub prompt: Option<String>,
    /// Parameters that were given more than once.
    pub repeated: Vec<&'static str>,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizeError {
    /// The client or the redirect URI is not verified, so the person sees the error and is not redirected.
    #[error("{0}")]
    Quoted(String),
    /// The client may be told, at its redirect URI.
    #[error("{}", .0.description)]
    Wrong(Box<WrongQuestion>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An invalid request of a known client. Anybody can register a client and send invalid requests, so a person is
/// redirected without a page only to a client that they know (RFC 9700, section 4.11.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongQuestion {
    pub client_id: String,
    /// An error code of the standard.
    pub error: &'static str,
    pub description: &'static str,
    /// Where the client is told.
    pub redirect: Url,
    /// Whether the client is a program on the person's own machine.
    pub is_loopback: bool,
}

impl AuthorizeParams {
    /// Reads parameters in any order. Unknown ones are ignored.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut params = Self::default();
        for (name, value) in pairs {
            let Some((name, field)) = params.field(&name) else {
                continue;
            };
            if value.is_empty() {
                continue;
            }
            if field.is_none() {
                *field = Some(value);
            } else {
                params.repeated.push(name);
            }
        }
        params
    }

    fn field(&mut self, name: &str) -> Option<(&'static str, &mut Option<String>)> {
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
            "prompt" => ("prompt", &mut self.prompt),
            _ => return None,
        })
    }

    fn repeats(&self, name: &str) -> bool {
        self.repeated.contains(&name)
    }
}

impl Grants {
    /// Client and redirect are checked first: before that, nobody may be redirected.
    pub(super) async fn check_request(
        &self,
        address: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<AuthorizationRequest, AuthorizeError> {
        let client = self.find_client(address, params).await?;
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
        check_prompt(params).map_err(wrong)?;
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
        address: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<ClientRecord, AuthorizeError> {
        if params.repeats("client_id") || params.repeats("redirect_uri") {
            return Err(shown("The request names its client or its address twice."));
        }
        let Some(id) = params.client_id.as_deref() else {
            return Err(shown("The request names no client (client_id)."));
        };
        if ClientIdUrl::is_meant(id) {
            return self.fetch_client(address, id).await;
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

    /// An unregistered client describes itself at the URL that is its ID.
    async fn fetch_client(
        &self,
        address: IpAddr,
        id: &str,
    ) -> Result<ClientRecord, AuthorizeError> {
        let url = ClientIdUrl::parse(id).map_err(|error| shown(&error.to_string()))?;
        let document = self.documents.fetch(network(address), &url).await;
        let document = document.map_err(|unusable| shown(&unusable.0))?;
        read_client(&document, id, true).map_err(|problem| shown(&problem.to_string()))
    }

    fn find_resource(&self, params: &AuthorizeParams) -> Result<String, RequestError> {
        const FOREIGN: RequestError = (
            "invalid_target",
            "Tokens are given for this service's own MCP server only.",
        );
        let ours = &self.settings.resource;
        let is_ours = |requested: &String| same_resource(ours, requested);
        if params.repeats("resource") || !params.resource.as_ref().is_none_or(is_ours) {
            return Err(FOREIGN);
        }
        Ok(ours.clone())
    }

    /// Builds the client's error answer, with its `state`.
    pub(super) fn wrong(
        &self,
        client_id: &str,
        redirect: &RedirectUri,
        params: &AuthorizeParams,
        (error, description): RequestError,
    ) -> AuthorizeError {
        let state = params.state.as_deref();
        let state = state.filter(|state| state.len() <= MAX_STATE_BYTES);
        let state = state.filter(|_| !params.repeats("state"));
        let answer = [("error", error), ("error_description", description)];
        let answer = answer
            .into_iter()
            .chain(state.map(|state| ("state", state)));
        let answer = answer.chain([("iss", self.settings.issuer.as_str())]);
        AuthorizeError::Wrong(Box::new(WrongQuestion {
            client_id: client_id.to_owned(),
            error,
            description,
            redirect: redirect.with(answer),
            is_loopback: redirect.is_loopback(),
        }))
    }
}

fn find_redirect(
    client: &ClientRecord,
    params: &AuthorizeParams,
) -> Result<RedirectUri, AuthorizeError> {
    let Some(requested) = params.redirect_uri.as_deref() else {
        return Err(shown(
            "The request does not say where to go back to (redirect_uri).",
        ));
    };
    client
        .redirect(requested)
        .ok_or_else(|| shown("The redirect_uri of the request is not registered for its client."))
}

fn check_form(params: &AuthorizeParams) -> Result<(), RequestError> {
    let invalid = |description| Err(("invalid_request", description));
    // `find_resource` deals with more than one resource.
    if params.repeated.iter().any(|name| *name != "resource") {
        return invalid("A parameter was sent twice.");
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

/// A person decides about each request, so it cannot be answered without a page.
fn check_prompt(params: &AuthorizeParams) -> Result<(), RequestError> {
    let mut prompts = params.prompt.as_deref().unwrap_or_default().split(' ');
    if prompts.any(|prompt| prompt == "none") {
        return Err((
            "login_required",
            "A person has to sign in and decide; repeat the request without prompt=none.",
        ));
    }
    Ok(())
}

fn find_challenge(params: &AuthorizeParams) -> Result<Challenge, RequestError> {
    let invalid = |description| ("invalid_request", description);
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

fn shown(description: &str) -> AuthorizeError {
    AuthorizeError::Quoted(description.to_owned())
}

fn unknown_client() -> AuthorizeError {
    shown(
        "The client of this request is unknown, or was not used for too long; it has to register again.",
    )
}
