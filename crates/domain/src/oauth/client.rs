//! OAuth clients and their metadata.

use std::fmt;

use serde::Deserialize;
use url::Url;

use super::redirect::{RedirectUri, RedirectUriError};
use crate::callback_url::CallbackUrl;
use crate::quoted::Quoted;

pub const MAX_CLIENT_ID_BYTES: usize = 512;
pub const MAX_REDIRECTS: usize = 10;
const MAX_NAME_CHARS: usize = 80;

/// A client's name: 1 to 80 characters on one line, without characters that hide or reorder text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName(String);

impl ClientName {
    /// Checks a name; surrounding white space is dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.trim();
        let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        (fits && !name.chars().any(is_deceptive)).then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control characters, and characters that are invisible or change the direction of text.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{FEFF}')
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
}

/// A client, as it registered or as its metadata document describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRecord {
    /// A random ID that this service gave it, or the URL of its metadata document.
    pub id: String,
    pub name: ClientName,
    pub redirects: Vec<RedirectUri>,
}

impl ClientRecord {
    /// The requested redirect address, if the client has registered it.
    pub fn redirect(&self, asked: &str) -> Option<RedirectUri> {
        let asked = RedirectUri::parse(asked).ok()?;
        let permitted = self.redirects.iter().any(|own| own.permits(&asked));
        permitted.then_some(asked)
    }
}

/// A client ID that is the URL of a metadata document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdUrl(CallbackUrl);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client_id that is an address must be https with a path, in its plain form, without a user part, '..' or a fragment"
)]
pub struct ClientIdUrlError;

impl ClientIdUrl {
    /// Whether a client ID looks like a URL.
    pub fn is_meant(id: &str) -> bool {
        id.contains("://") || id.starts_with("http")
    }

    pub fn parse(id: &str) -> Result<Self, ClientIdUrlError> {
        let checked = CallbackUrl::parse(id).map_err(|_| ClientIdUrlError)?;
        let url = Url::parse(id).map_err(|_| ClientIdUrlError)?;
        let is_plain = url.as_str() == id && id.len() <= MAX_CLIENT_ID_BYTES && id.is_ascii();
        let is_document = url.scheme() == "https" && url.path() != "/" && !id.contains('#');
        if is_plain && is_document {
            Ok(Self(checked))
        } else {
            Err(ClientIdUrlError)
        }
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The URL for [`crate::ports::UrlGuard`], which decides whether it may be called.
    pub fn as_url(&self) -> &CallbackUrl {
        &self.0
    }
}

/// What is wrong with a client's metadata, for the developer of the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientProblem {
    #[error("the metadata is not a JSON object with the fields of RFC 7591: {0}")]
    Form(String),
    #[error("redirect_uris: {0}")]
    Redirect(#[from] RedirectUriError),
    /// None, or too many.
    #[error("redirect_uris must hold 1 to 10 addresses; it holds {0}")]
    Redirects(usize),
    #[error("client_name must have 1 to 80 characters without control or direction characters")]
    Name,
    /// It asks for a client secret or an unsupported flow.
    #[error("{field} {} is not offered here; what is: {offered}", Quoted(.value))]
    NotOffered {
        field: &'static str,
        value: String,
        offered: &'static str,
    },
    /// The document describes another client.
    #[error("the document's client_id is not the address that it was fetched from")]
    OtherClient,
}

/// The fields that we use; others are ignored.
#[derive(Deserialize)]
struct Metadata {
    client_id: Option<String>,
    client_name: Option<String>,
    client_secret: Option<serde::de::IgnoredAny>,
    redirect_uris: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
}

impl Metadata {
    /// A document declares how the client behaves, so it is checked strictly; a registration is answered with what
    /// applies.
    fn check_methods(&self, document: bool) -> Result<(), ClientProblem> {
        let refuse = |field, value: &str, offered| {
            let value = value.to_owned();
            Err(ClientProblem::NotOffered {
                field,
                value,
                offered,
            })
        };
        if document && self.client_secret.is_some() {
            return refuse("client_secret", "(hidden)", "none");
        }
        let method = self.token_endpoint_auth_method.as_deref();
        if let Some(method) = method.filter(|method| document && *method != "none") {
            return refuse("token_endpoint_auth_method", method, "none");
        }
        for (field, given, needed) in [
            ("grant_types", &self.grant_types, "authorization_code"),
            ("response_types", &self.response_types, "code"),
        ] {
            if let Some(given) = given
                && !given.iter().any(|value| value == needed)
            {
                return refuse(field, &given.join(" "), needed);
            }
        }
        Ok(())
    }
}

/// Parses a client's metadata. With `document`, the JSON comes from the URL that is the client's ID: it must contain
/// that ID and a name. A client that registers without a name is named after the host of its redirect address.
pub fn read_client(json: &[u8], id: &str, document: bool) -> Result<ClientRecord, ClientProblem> {
    let metadata: Metadata = serde_json::from_slice(json)
        .map_err(|error| ClientProblem::Form(format!("line {}", error.line())))?;
    if document && metadata.client_id.as_deref() != Some(id) {
        return Err(ClientProblem::OtherClient);
    }
    metadata.check_methods(document)?;
    let redirects = metadata.redirect_uris.unwrap_or_default();
    if !(1..=MAX_REDIRECTS).contains(&redirects.len()) {
        return Err(ClientProblem::Redirects(redirects.len()));
    }
    let redirects = redirects
        .iter()
        .map(|uri| RedirectUri::register(uri))
        .collect::<Result<Vec<_>, _>>()?;
    let name = match (metadata.client_name, document) {
        (Some(name), _) => ClientName::parse(&name),
        (None, false) => ClientName::parse(&host_or_scheme(&redirects[0])),
        (None, true) => None,
    };
    Ok(ClientRecord {
        id: id.to_owned(),
        name: name.ok_or(ClientProblem::Name)?,
        redirects,
    })
}

fn host_or_scheme(redirect: &RedirectUri) -> String {
    let url = Url::parse(redirect.as_str()).expect("it was parsed before");
    let name = url.host_str().unwrap_or_else(|| url.scheme());
    name.chars().take(MAX_NAME_CHARS).collect()
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "https://client.example/app.json";

    #[test]
    fn names_are_short_and_hide_nothing() {
        for (text, expected) in [
            ("Acme Desk", Some("Acme Desk")),
            ("  Acme ", Some("Acme")),
            (
                "<script>alert(1)</script>",
                Some("<script>alert(1)</script>"),
            ),
            ("", None),
            ("   ", None),
            ("a\nb", None),
            ("a\u{202E}b", None),
            ("a\u{200B}b", None),
            ("a\u{2066}b", None),
        ] {
            let name = ClientName::parse(text);
            assert_eq!(name.as_ref().map(ClientName::as_str), expected, "{text:?}");
        }
        assert!(ClientName::parse(&"a".repeat(80)).is_some());
        assert!(ClientName::parse(&"a".repeat(81)).is_none());
    }

    #[test]
    fn a_client_id_that_is_an_address_is_plain_https() {
        for (id, ok) in [
            (ID, true),
            ("https://client.example:8443/a?b=c", true),
            ("http://client.example/app.json", false),
            ("https://client.example", false),
            ("https://client.example/", false),
            ("https://client.example/a/../b", false),
            ("https://client.example/%2e%2e/b", false),
            ("https://CLIENT.example/a", false),
            ("https://user@client.example/a", false),
            ("https://@client.example/a", false),
            ("https://client.example/a#b", false),
            ("https://client.example/a#", false),
            ("https://client.example:443/a", false),
            ("https://client.example\\a", false),
            ("file:///a", false),
            ("", false),
        ] {
            assert_eq!(ClientIdUrl::parse(id).is_ok(), ok, "{id}");
        }
        let long = format!("https://client.example/{}", "a".repeat(MAX_CLIENT_ID_BYTES));
        assert!(ClientIdUrl::parse(&long).is_err());
    }

    #[test]
    fn client_metadata_is_checked_strictly() {
        let good = r#"{"client_id":"https://client.example/app.json","client_name":"App",
            "redirect_uris":["https://client.example/cb"],"token_endpoint_auth_method":"none","logo_uri":7}"#;
        let read = |json: &str, document| read_client(json.as_bytes(), ID, document);
        let client = read(good, true).expect("a client");
        assert_eq!((client.id.as_str(), client.name.as_str()), (ID, "App"));
        let many = format!("{:?}", vec!["https://client.example/cb"; 11]);
        for (name, from, to, reason) in [
            (
                "another's document",
                "app.json",
                "other.json",
                "not the address",
            ),
            ("no client ID", "client_id", "client_uri", "not the address"),
            ("no name", "client_name", "name", "client_name"),
            ("a bad name", "\"App\"", "\"\"", "client_name"),
            ("not JSON", "{\"client_id\"", "{client_id", "JSON"),
            ("a list", "{\"client_id\"", "[{\"client_id\"", "JSON"),
            (
                "a name twice",
                "\"logo_uri\":7",
                "\"client_name\":\"B\"",
                "JSON",
            ),
            (
                "a secret",
                "\"logo_uri\":7",
                "\"client_secret\":\"s\"",
                "client_secret",
            ),
            (
                "another method",
                "\"none\"",
                "\"private_key_jwt\"",
                "token_endpoint_auth_method",
            ),
            ("no redirects", "redirect_uris", "redirects", "1 to 10"),
            (
                "too many",
                "[\"https://client.example/cb\"]",
                &many,
                "1 to 10",
            ),
            (
                "a bad one",
                "https://client.example/cb",
                "http://client.example/cb",
                "redirect_uris",
            ),
            (
                "implicit",
                "\"logo_uri\":7",
                "\"response_types\":[\"token\"]",
                "response_types",
            ),
            (
                "passwords",
                "\"logo_uri\":7",
                "\"grant_types\":[\"password\"]",
                "grant_types",
            ),
        ] {
            let problem = read(&good.replacen(from, to, 1), true).expect_err(name);
            assert!(problem.to_string().contains(reason), "{name}: {problem}");
        }
    }

    #[test]
    fn registration_requires_the_code_flow_and_ignores_the_rest() {
        let json = r#"{"redirect_uris":["https://client.example/cb"],"token_endpoint_auth_method":"client_secret_post",
            "grant_types":["authorization_code","client_credentials"],"response_types":["code","token"]}"#;
        assert!(read_client(json.as_bytes(), "x", false).is_ok());
        for needed in ["authorization_code", "\"code\""] {
            let json = json.replace(needed, "\"x\"").replace("\"\"x\"\"", "\"x\"");
            assert!(
                read_client(json.as_bytes(), "x", false).is_err(),
                "{needed}"
            );
        }
    }

    #[test]
    fn a_client_without_a_name_is_named_after_its_redirect_address() {
        for (redirect, name) in [
            ("https://client.example/cb", "client.example"),
            ("http://127.0.0.1:9/cb", "127.0.0.1"),
            ("com.example.app:/cb", "com.example.app"),
        ] {
            let json = format!(r#"{{"redirect_uris":["{redirect}"]}}"#);
            let client = read_client(json.as_bytes(), "x", false).expect("a client");
            assert_eq!(client.name.as_str(), name);
        }
    }
}
