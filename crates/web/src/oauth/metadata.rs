//! Authorization server metadata (RFC 8414).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Permission;
use domain::oauth::SCOPES;
use serde_json::json;

use super::OAuth;

pub(super) async fn metadata(State(oauth): State<Arc<OAuth>>) -> Response {
    let settings = oauth.grants().settings();
    let issuer = &settings.issuer;
    let none = ["none"];
    let document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/oauth/authorize"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "revocation_endpoint": format!("{issuer}/oauth/revoke"),
        "registration_endpoint": format!("{issuer}/oauth/register"),
        "scopes_supported": SCOPES.map(Permission::name),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": none,
        "revocation_endpoint_auth_methods_supported": none,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "protected_resources": [settings.resource],
    });
    axum::Json(document).into_response()
}
