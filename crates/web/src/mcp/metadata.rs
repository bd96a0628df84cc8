//! Protected resource metadata (RFC 9728), and challenges that refer to it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Permission;
use http::HeaderValue;
use serde_json::json;

use super::{Mcp, McpSettings};

pub(super) const PATH: &str = "/.well-known/oauth-protected-resource";

/// The permissions that an AI client may be granted, as scopes.
pub(super) const SCOPES: [Permission; 5] = [
    Permission::SmsSend,
    Permission::SmsRates,
    Permission::SenderWrite,
    Permission::HlrLookup,
    Permission::NumbersRead,
];

/// The metadata, and the challenges that name its address.
pub(super) struct Metadata {
    document: serde_json::Value,
    address: String,
}

pub(super) enum Challenge {
    Missing,
    Invalid,
    Scope(Permission),
}

impl Metadata {
    pub(super) fn new(settings: &McpSettings) -> Self {
        let base = settings.mcp_url.as_str().trim_end_matches('/');
        let server = settings.auth_url.as_str().trim_end_matches('/');
        let document = json!({
            "resource": format!("{base}/mcp"),
            "authorization_servers": [server],
            "bearer_methods_supported": ["header"],
            "scopes_supported": SCOPES.map(Permission::name),
        });
        Self {
            document,
            address: format!("{base}{PATH}"),
        }
    }

    /// The value of `WWW-Authenticate`.
    pub(super) fn challenge(&self, why: &Challenge) -> HeaderValue {
        let address = &self.address;
        let all = || SCOPES.map(Permission::name).join(" ");
        let (scope, error) = match why {
            Challenge::Missing => (all(), ""),
            Challenge::Invalid => (all(), ", error=\"invalid_token\""),
            Challenge::Scope(needed) => {
                (needed.name().to_owned(), ", error=\"insufficient_scope\"")
            }
        };
        let text = format!("Bearer resource_metadata=\"{address}\", scope=\"{scope}\"{error}");
        text.try_into().expect("a URL and names are visible ASCII")
    }
}

pub(super) async fn show(State(mcp): State<Arc<Mcp>>) -> Response {
    axum::Json(&mcp.metadata.document).into_response()
}
