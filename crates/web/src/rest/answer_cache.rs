//! Answers that change only with an import: built once and kept as bytes with an `ETag`.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwapOption;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::{AccountId, Channel, Country};
use engine::catalogue::CatalogueSnapshot;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use numbering::reference::OperatorId;

const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
/// Enough of the hash to tell two versions of an answer apart.
const TAG_BYTES: usize = 12;

/// The key of an answer. Only existing items are cached, so the data limits the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Operator(OperatorId),
    Networks(Country, usize),
    Prefixes(Country),
    RatesJson(Channel, Option<AccountId>),
    RatesCsv(Channel, Option<AccountId>),
}

pub(super) struct CachedAnswer {
    body: Bytes,
    content_type: HeaderValue,
    tag: HeaderValue,
    total: Option<usize>,
}

impl CachedAnswer {
    pub(super) fn json(body: String) -> Self {
        Self::new(body, HeaderValue::from_static("application/json"))
    }

    pub(super) fn new(body: String, content_type: HeaderValue) -> Self {
        let digest = domain::sha256(&[body.as_bytes()]);
        let hex = digest[..TAG_BYTES]
            .iter()
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        Self {
            body: body.into(),
            content_type,
            tag: HeaderValue::from_str(&format!("\"{hex}\"")).expect("hex digits"),
            total: None,
        }
    }

    /// Adds the number of items over all pages.
    pub(super) fn with_total(self, total: usize) -> Self {
        Self {
            total: Some(total),
            ..self
        }
    }

    /// The answer, or 304 if the caller has it already.
    pub(super) fn respond(&self, request: &HeaderMap) -> Response {
        let mut response = if self.is_known(request) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = self.body.clone().into_response();
            let content_type = self.content_type.clone();
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.tag.clone());
        if let Some(total) = self.total {
            headers.insert(TOTAL_COUNT, total.into());
        }
        response
    }

    /// Whether `If-None-Match` names this version, or any.
    fn is_known(&self, request: &HeaderMap) -> bool {
        let tag = self.tag.as_bytes();
        let mut named = request
            .get_all(IF_NONE_MATCH)
            .iter()
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii);
        named.any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag)
    }
}

/// Answers since the last import.
#[derive(Default)]
pub(super) struct AnswerCache {
    current: ArcSwapOption<Generation>,
}

struct Generation {
    live: Arc<CatalogueSnapshot>,
    answers: RwLock<HashMap<Subject, Arc<CachedAnswer>>>,
}

impl AnswerCache {
    pub(super) fn get(
        &self,
        live: &Arc<CatalogueSnapshot>,
        subject: Subject,
        make: impl FnOnce() -> CachedAnswer,
    ) -> Arc<CachedAnswer> {
        let generation = self.generation(live);
        let known = generation
            .answers
            .read()
            .expect("no holder panics")
            .get(&subject)
            .cloned();
        known.unwrap_or_else(|| {
            let answer = Arc::new(make());
            let mut answers = generation.answers.write().expect("no holder panics");
            answers.insert(subject, answer.clone());
            answer
        })
    }

    fn generation(&self, live: &Arc<CatalogueSnapshot>) -> Arc<Generation> {
        if let Some(current) = &*self.current.load()
            && Arc::ptr_eq(&current.live, live)
        {
            return current.clone();
        }
        let new = Arc::new(Generation {
            live: live.clone(),
            answers: RwLock::default(),
        });
        self.current.store(Some(new.clone()));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_has_the_answer_gets_304() {
        let answer = CachedAnswer::json("[]".to_owned()).with_total(0);
        let tag = answer.tag.to_str().expect("ASCII").to_owned();
        for (given, status) in [
            (None, 200),
            (Some(tag.clone()), 304),
            (Some(format!("W/{tag}")), 304),
            (Some(format!("\"x\" , {tag}")), 304),
            (Some("*".to_owned()), 304),
            (Some("\"x\"".to_owned()), 200),
            (Some(tag.trim_matches('"').to_owned()), 200),
        ] {
            let mut request = HeaderMap::new();
            if let Some(given) = &given {
                request.insert(IF_NONE_MATCH, given.parse().expect("a header"));
            }
            let response = answer.respond(&request);
            assert_eq!(response.status().as_u16(), status, "{given:?}");
            assert_eq!(response.headers()[ETAG], *tag);
            assert_eq!(response.headers()[TOTAL_COUNT], "0");
        }
    }

    #[test]
    fn another_body_has_another_tag() {
        assert_ne!(
            CachedAnswer::json("[1]".to_owned()).tag,
            CachedAnswer::json("[2]".to_owned()).tag
        );
    }
}
