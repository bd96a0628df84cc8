//! The tables of an HTTP carrier.

use std::collections::BTreeMap;

use anyhow::ensure;
use outbound::http::{
    HmacEncoding, HmacHash, RequestDescription, SignatureScheme, SigningDescription,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpRequest {
    /// POST, or GET if it asks for a report.
    pub(super) method: Option<String>,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) basic: Option<HttpBasic>,
    #[serde(default)]
    pub(super) query: BTreeMap<String, toml::Value>,
    pub(super) json: Option<toml::Value>,
    pub(super) form: Option<BTreeMap<String, toml::Value>>,
    pub(super) hmac: Option<HttpHmac>,
}

/// The signature of the requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpHmac {
    pub(super) key: String,
    pub(super) header: String,
    #[serde(default = "default_value")]
    pub(super) value: String,
    #[serde(default = "default_signed")]
    pub(super) signed: String,
    #[serde(default = "default_hash")]
    pub(super) hash: HttpHmacHash,
    #[serde(default = "default_encoding")]
    pub(super) encoding: HttpHmacEncoding,
}

fn default_value() -> String {
    "{{ signature }}".to_owned()
}

fn default_signed() -> String {
    "{{ body }}".to_owned()
}

const fn default_hash() -> HttpHmacHash {
    HttpHmacHash::Sha256
}

const fn default_encoding() -> HttpHmacEncoding {
    HttpHmacEncoding::Hex
}

impl HttpRequest {
    /// The request, with its method if none is set.
    pub(super) fn description(&self, default_method: &str) -> RequestDescription {
        let pairs = |table: &BTreeMap<String, toml::Value>| {
            let pair = |(name, value): (&String, &toml::Value)| (name.clone(), to_json(value));
            table.iter().map(pair).collect::<Vec<_>>()
        };
        let basic = self.basic.as_ref();
        let headers = self.headers.iter();
        let hmac = self.hmac.as_ref();
        RequestDescription {
            method: self.method.as_deref().unwrap_or(default_method).to_owned(),
            url: self.url.clone(),
            headers: headers
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            basic: basic.map(|basic| (basic.user.clone(), basic.password.clone())),
            query: pairs(&self.query),
            json: self.json.as_ref().map(to_json),
            form: self.form.as_ref().map(pairs),
            hmac: hmac.map(HttpHmac::description),
            item: None,
        }
    }
}

impl HttpHmac {
    fn description(&self) -> SigningDescription {
        SigningDescription {
            key: self.key.clone(),
            hash: self.hash.into(),
            encoding: self.encoding.into(),
            signed: self.signed.clone(),
            header: self.header.clone(),
            value: self.value.clone(),
        }
    }
}

pub(super) fn to_json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(to_json).collect(),
        toml::Value::Table(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.clone(), to_json(value)));
            serde_json::Value::Object(fields.collect())
        }
    }
}

/// Several messages in one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpBatch {
    pub(super) size: usize,
    pub(super) results: String,
    pub(super) to: Option<String>,
    pub(super) id: Option<String>,
    pub(super) state: Option<String>,
    pub(super) error: Option<String>,
    pub(super) item: toml::Value,
}

/// Asking for reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpPoll {
    #[serde(default = "default_interval_s")]
    pub(super) interval_s: u64,
    pub(super) request: HttpRequest,
}

const fn default_interval_s() -> u64 {
    60
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpBasic {
    pub(super) user: String,
    pub(super) password: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HttpResponse {
    pub(super) taken: Vec<String>,
    pub(super) later: Vec<String>,
    pub(super) id: Option<String>,
    pub(super) id_after: Option<String>,
    pub(super) state: Option<String>,
    pub(super) refused: Vec<String>,
    pub(super) refused_text: Vec<String>,
    pub(super) error: Option<String>,
    pub(super) error_after: Option<String>,
    pub(super) errors: BTreeMap<String, u16>,
}

impl Default for HttpResponse {
    fn default() -> Self {
        Self {
            taken: vec!["2xx".to_owned()],
            later: vec!["429".to_owned(), "5xx".to_owned()],
            id: None,
            id_after: None,
            state: None,
            refused: Vec::new(),
            refused_text: Vec::new(),
            error: None,
            error_after: None,
            errors: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpReport {
    pub(super) id: Option<String>,
    pub(super) state: String,
    #[serde(default)]
    pub(super) delivered: Vec<String>,
    #[serde(default)]
    pub(super) failed: Vec<String>,
    #[serde(default)]
    pub(super) expired: Vec<String>,
    #[serde(default)]
    pub(super) seen: Vec<String>,
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) errors: BTreeMap<String, u16>,
    pub(super) network: Option<String>,
    pub(super) mcc: Option<String>,
    pub(super) mnc: Option<String>,
    #[serde(default)]
    pub(super) shared: bool,
    pub(super) list: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpInbound {
    pub(super) list: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) text: String,
    pub(super) id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpLookup {
    pub(super) present: String,
    #[serde(default)]
    pub(super) present_values: Vec<String>,
    pub(super) ported: Option<String>,
    pub(super) network: Option<String>,
    pub(super) mcc: Option<String>,
    pub(super) mnc: Option<String>,
    pub(super) original_network: Option<String>,
    pub(super) roaming: Option<String>,
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) errors: BTreeMap<String, u16>,
    pub(super) other_error: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpSignature {
    pub(super) scheme: HttpSignatureScheme,
    pub(super) key: String,
    pub(super) header: Option<String>,
    pub(super) hash: Option<HttpHmacHash>,
    pub(super) encoding: Option<HttpHmacEncoding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HttpSignatureScheme {
    Twilio,
    SmsGate,
    Telnyx,
    Vonage,
    Basic,
    Hmac,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HttpHmacHash {
    Sha1,
    Sha256,
    Sha512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HttpHmacEncoding {
    Hex,
    Base64,
}

impl HttpSignature {
    /// What is signed, and how.
    pub(super) fn signature_scheme(&self) -> anyhow::Result<SignatureScheme> {
        let scheme = match self.scheme {
            HttpSignatureScheme::Twilio => SignatureScheme::Twilio,
            HttpSignatureScheme::SmsGate => SignatureScheme::SmsGate,
            HttpSignatureScheme::Telnyx => SignatureScheme::Telnyx,
            HttpSignatureScheme::Vonage => SignatureScheme::Vonage,
            HttpSignatureScheme::Basic => SignatureScheme::Basic,
            HttpSignatureScheme::Hmac => {
                let header = self.header.as_deref().unwrap_or_default();
                ensure!(
                    !header.is_empty(),
                    "signature.header is missing; give the name of the header that has the signature"
                );
                return Ok(SignatureScheme::Hmac {
                    header: header.to_ascii_lowercase(),
                    hash: self.hash.unwrap_or_else(default_hash).into(),
                    encoding: self.encoding.unwrap_or_else(default_encoding).into(),
                });
            }
        };
        ensure!(
            self.header.is_none() && self.hash.is_none() && self.encoding.is_none(),
            "signature.header, hash and encoding are only for the scheme hmac"
        );
        Ok(scheme)
    }
}

impl From<HttpHmacHash> for HmacHash {
    fn from(hash: HttpHmacHash) -> Self {
        match hash {
            HttpHmacHash::Sha1 => Self::Sha1,
            HttpHmacHash::Sha256 => Self::Sha256,
            HttpHmacHash::Sha512 => Self::Sha512,
        }
    }
}

impl From<HttpHmacEncoding> for HmacEncoding {
    fn from(encoding: HttpHmacEncoding) -> Self {
        match encoding {
            HttpHmacEncoding::Hex => Self::Hex,
            HttpHmacEncoding::Base64 => Self::Base64,
        }
    }
}
