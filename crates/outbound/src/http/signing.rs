//! Signs requests with an HMAC, for providers that check one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use ring::hmac;

use super::signature::{HmacEncoding, HmacHash};
use super::template::Template;
use super::values::{Subject, Values, hex};

/// How requests are signed, as it is configured. Texts are templates.
#[derive(Debug, Clone)]
pub struct SigningDescription {
    pub key: String,
    pub hash: HmacHash,
    pub encoding: HmacEncoding,
    /// What is signed.
    pub signed: String,
    /// The header that has the signature.
    pub header: String,
    /// The value of that header.
    pub value: String,
}

/// How the requests of a carrier are signed.
#[derive(Debug, Clone)]
pub(super) struct SigningRules {
    pub(super) key: hmac::Key,
    pub(super) encoding: HmacEncoding,
    pub(super) signed: Template,
    pub(super) header: HeaderName,
    pub(super) value: Template,
}

impl SigningRules {
    /// Adds the signature to the headers of a request.
    pub(super) fn sign(
        &self,
        method: &Method,
        uri: &Uri,
        body: &str,
        values: &Values<'_>,
        headers: &mut HeaderMap,
    ) -> Option<()> {
        let signed = Values {
            subject: Subject::Signed {
                method: method.as_str(),
                path: uri.path_and_query().map_or("/", |path| path.as_str()),
                body,
            },
            ..*values
        };
        let signed = self.signed.text(&signed)?;
        let tag = hmac::sign(&self.key, signed.as_bytes());
        let signature = self.encoding.encode(tag.as_ref());
        let value = self.value.header(&Values {
            subject: Subject::Signature(&signature),
            ..*values
        });
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        headers.insert(&self.header, value);
        Some(())
    }
}

impl HmacEncoding {
    fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => hex(bytes),
            Self::Base64 => STANDARD.encode(bytes),
        }
    }
}
