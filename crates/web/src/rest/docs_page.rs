//! The page for people at `/docs`: Swagger UI, whose files are stored compressed.

use std::io::Read as _;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use utoipa_swagger_ui::SwaggerUi;

/// Swagger UI needs inline styles.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
/// No file of Swagger UI is longer, compressed.
const MAX_BYTES: usize = 4 << 20;

/// The document at `/openapi.json`, and the page that shows it.
pub(super) fn router(document: Value) -> Router {
    let page = SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", document);
    Router::new().merge(page).layer(from_fn(finish))
}

/// Adds headers, and decompresses a file for a client that does not accept gzip.
async fn finish(request: Request, next: Next) -> Response {
    let accepts_gzip = accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    if response.headers().contains_key(CONTENT_ENCODING) {
        if !accepts_gzip {
            response = decompress(response).await;
        }
        let vary = HeaderValue::from_static("accept-encoding");
        response.headers_mut().append(VARY, vary);
    }
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.into_iter().any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().trim_start_matches("q=");
        let is_refused = weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
        matches!(name.trim(), "gzip" | "*") && !is_refused
    })
}

async fn decompress(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let mut plain = Vec::new();
    let decompressed = match to_bytes(body, MAX_BYTES).await {
        Ok(compressed) => GzDecoder::new(&*compressed).read_to_end(&mut plain).is_ok(),
        Err(_) => false,
    };
    if !decompressed {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_whether_they_accept_gzip() {
        for (value, expected) in [
            (None, false),
            (Some("gzip, deflate, br, zstd"), true),
            (Some("br;q=1.0, gzip;q=0.8"), true),
            (Some("*"), true),
            (Some("identity"), false),
            (Some("gzip;q=0"), false),
            (Some("gzip;q=0.0, br"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(accepts_gzip(&headers), expected, "{value:?}");
        }
    }
}
