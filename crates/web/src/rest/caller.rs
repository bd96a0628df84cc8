//! The extractor that authenticates a caller and checks the permission that an operation needs.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::{Access, Permission};
use engine::identity::rate::Requester;
use http::request::Parts;
use requests::{Problem, RequestNotes, client_address, rate_limit};

use super::Rest;

/// A permission as a type, so that an operation's signature says what it needs.
pub(super) trait Need: Send {
    /// One of these is enough; empty if any valid token will do.
    const PERMISSIONS: &'static [Permission];
}

macro_rules! need {
    ($($name:ident => [$($permission:ident),*]),* $(,)?) => {
        $(
            pub(super) struct $name;
            impl Need for $name {
                const PERMISSIONS: &'static [Permission] = &[$(Permission::$permission),*];
            }
        )*
    };
}

need! {
    AnyToken => [],
    SmsSend => [SmsSend],
    SmsRead => [SmsRead],
    SmsReadOrSend => [SmsRead, SmsSend],
    ViberSend => [ViberSend],
    HlrLookup => [HlrLookup],
    SenderWrite => [SenderWrite],
    SmsRates => [SmsRates],
    NumbersRead => [NumbersRead],
    VerifySend => [VerifySend],
}

pub(super) struct Caller<N> {
    pub(super) access: Arc<Access>,
    need: PhantomData<N>,
}

impl<N: Need> FromRequestParts<Arc<Rest>> for Caller<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, rest: &Arc<Rest>) -> Result<Self, Problem> {
        let address = client_address(parts, &rest.settings.trusted_proxies);
        let header = parts.headers.get(&rest.settings.token_header);
        // A token that is not valid text is a wrong token, not a missing one.
        let header = header.map(|value| value.to_str().unwrap_or(""));
        let query = if header.is_none() && rest.settings.query_token {
            query_token(parts)
        } else {
            None
        };
        let token = header.or(query.as_deref());
        let (gate, log) = (&rest.engine.gate, &rest.engine.request_log);
        let access = match gate.admit(token, address, N::PERMISSIONS).await {
            Ok(access) => access,
            Err(refusal) => {
                if let Some(access) = token.and_then(|token| gate.find_cached(token)) {
                    RequestNotes::set_caller(&parts.extensions, log, &access);
                }
                return Err(refusal.into());
            }
        };
        RequestNotes::set_caller(&parts.extensions, log, &access);
        rate_limit::count(
            gate,
            &parts.extensions,
            access.account,
            Requester::Programs,
            access.requests_per_second,
        )?;
        Ok(Self {
            access,
            need: PhantomData,
        })
    }
}

fn query_token(parts: &Parts) -> Option<String> {
    let query = parts.uri.query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == "at")
        .map(|(_, token)| token.into_owned())
}
