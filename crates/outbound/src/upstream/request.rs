//! Builds the request for one message.

use std::fmt::{self, Write as _};

use domain::delivery::QueuedMessage;
use domain::message::text::{Coding, measure};
use domain::{Channel, Timestamp};
use ring::digest;
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use crate::proof::ProofKey;

/// The range of `expireIn` in the REST contract.
const EXPIRE_IN_S: std::ops::RangeInclusive<i64> = 360..=432_000;
/// Rounding of the remaining time: from how many seconds on, in steps of how many. A retry soon after then has the same
/// body.
const STEPS_S: [(i64, i64); 3] = [(21_600, 3600), (3600, 600), (0, 60)];
/// How much of the carrier's name is in a key, which may have 255 characters.
const MAX_KEY_NAME: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageRequest {
    /// The path below the upstream's URL.
    pub(super) path: &'static str,
    /// Makes a repetition harmless at an upstream that supports `Idempotency-Key`.
    pub(super) key: String,
    /// JSON.
    pub(super) body: String,
}

/// Builds the requests of one carrier.
pub(super) struct RequestBuilder {
    name: String,
    report_url: Url,
    proofs: ProofKey,
}

/// The fields that are the same for each attempt.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Sms {
        to: String,
        from: String,
        message: &'a str,
        priority: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        udh: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        coding: Option<u8>,
    },
    Viber {
        to: String,
        from: String,
        message: &'a str,
        priority: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        im: Option<Box<RawValue>>,
    },
    Lookup {
        msisdn: String,
    },
}

impl RequestBuilder {
    /// Reports go to URLs below `report_url`.
    pub(super) fn new(name: &str, report_url: &Url, proofs: ProofKey) -> Self {
        let mut report_url = report_url.clone();
        report_url.set_query(None);
        report_url.set_fragment(None);
        Self {
            name: name.to_owned(),
            report_url,
            proofs,
        }
    }

    pub(super) fn build(&self, queued: &QueuedMessage, now: Timestamp) -> MessageRequest {
        let (path, content) = content(queued);
        let mut body = serde_json::to_string(&content).expect("texts and numbers are JSON");
        let key = self.key(queued, path, &body);
        let report = serde_json::to_string(self.report_address(queued).as_str())
            .expect("an address is a text");
        body.truncate(body.len() - 1);
        let field = match queued.channel {
            Channel::Sms | Channel::Viber => "dlrUrl",
            Channel::Hlr => "callBackUrl",
        };
        let mut add = |text: fmt::Arguments<'_>| {
            body.write_fmt(text).expect("a string takes everything");
        };
        add(format_args!(r#","{field}":{report}"#));
        if queued.channel == Channel::Sms {
            let expire_in = expire_in(queued.expires_at, now);
            add(format_args!(r#","expireIn":{expire_in}"#));
        }
        body.push('}');
        MessageRequest { path, key, body }
    }

    /// The callback URL of a message.
    fn report_address(&self, queued: &QueuedMessage) -> Url {
        let proof = self.proofs.proof(&self.name, queued.id);
        let mut address = self.report_url.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty()
                .extend(["carriers", &self.name, "reports"])
                .extend([&queued.id.to_string(), &proof]);
        }
        address
    }

    /// The carrier, the message and a hash of its content.
    ///
    /// Without the hash, two messages could have the same key: IDs start again with an empty database, and two services
    /// may share an account. The upstream would take the second message for a repetition of the first.
    fn key(&self, queued: &QueuedMessage, path: &str, content: &str) -> String {
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [self.report_url.as_str(), &self.name, path, content] {
            hash.update(part.as_bytes());
            hash.update(b"\n");
        }
        let hash = hash.finish();
        let (first, _) = hash
            .as_ref()
            .split_first_chunk()
            .expect("32 bytes are more than 8");
        let fingerprint = u64::from_be_bytes(*first);
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = self.name.chars().filter(plain).take(MAX_KEY_NAME).collect();
        format!("{name}-{}-{fingerprint:016x}", queued.id)
    }
}

fn content(queued: &QueuedMessage) -> (&'static str, Content<'_>) {
    let to = queued.to.to_string();
    let from = || {
        let from = queued.from.as_ref();
        from.map(ToString::to_string).unwrap_or_default()
    };
    match queued.channel {
        Channel::Sms => {
            let content = Content::Sms {
                to,
                from: from(),
                message: &queued.text,
                priority: queued.priority.name(),
                udh: queued.udh.as_ref().map(ToString::to_string),
                coding: chosen_coding(queued).map(Coding::number),
            };
            ("sms", content)
        }
        Channel::Viber => {
            let filled = queued.interactive.as_ref().filter(|im| !im.is_empty());
            let content = Content::Viber {
                to,
                from: from(),
                message: &queued.text,
                priority: queued.priority.name(),
                im: filled.map(|im| RawValue::from_string(im.to_json()).expect("it is JSON")),
            };
            ("viber", content)
        }
        Channel::Hlr => ("hlr", Content::Lookup { msisdn: to }),
    }
}

/// The encoding, if the caller chose another one than the upstream would choose by itself.
fn chosen_coding(queued: &QueuedMessage) -> Option<Coding> {
    let is_chosen = queued.udh.is_some() || measure(&queued.text) != Ok(queued.shape);
    is_chosen.then_some(queued.shape.coding)
}

/// The remaining seconds, rounded down unless the contract requires more.
fn expire_in(expires_at: Timestamp, now: Timestamp) -> i64 {
    let left = expires_at.duration_since(now).as_secs().max(0);
    let (_, step) = STEPS_S
        .into_iter()
        .find(|(from, _)| left >= *from)
        .expect("the last one starts at 0");
    (left - left % step).clamp(*EXPIRE_IN_S.start(), *EXPIRE_IN_S.end())
}

#[cfg(test)]
mod tests;
