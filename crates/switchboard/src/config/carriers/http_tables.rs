//! The tables of an HTTP carrier.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpRequest {
    #[serde(default = "default_method")]
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) basic: Option<HttpBasic>,
    #[serde(default)]
    pub(super) query: BTreeMap<String, toml::Value>,
    pub(super) json: Option<toml::Value>,
    pub(super) form: Option<BTreeMap<String, toml::Value>>,
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
    pub(super) error: Option<String>,
    pub(super) errors: BTreeMap<String, u16>,
}

impl Default for HttpResponse {
    fn default() -> Self {
        Self {
            taken: vec!["2xx".to_owned()],
            later: vec!["429".to_owned(), "5xx".to_owned()],
            id: None,
            error: None,
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
    #[serde(default)]
    pub(super) shared: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpInbound {
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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpSignature {
    pub(super) scheme: HttpSignatureScheme,
    pub(super) key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HttpSignatureScheme {
    Twilio,
    SmsGate,
}

fn default_method() -> String {
    "POST".to_owned()
}
