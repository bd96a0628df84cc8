//! The user's consent to a costly message, asked for by the client (elicitation).
//!
//! A client of version 2026-07-28 gets the question as the result of its call, and repeats the call with the user's
//! answer. Nothing is stored in between: `requestState` is the price that the user was asked about. It needs no
//! signature, because a client that changes it could as well invent the answer. Clients of older versions cannot be
//! asked, because the server has no connection on which to send them a request.

use std::collections::BTreeMap;

use domain::Money;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest,
    InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::envelope::{Envelope, ErrorCode};

/// The name of the question, which the answer repeats.
const QUESTION: &str = "cost";

/// Whether the client can show a form. One that names no mode can.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The user's answer, as far as a call has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    NotAsked,
    Declined,
    /// For this price.
    Given(Money),
}

impl Consent {
    pub(super) fn read(request: &CallToolRequestParams) -> Self {
        let answers = request.input_responses.as_ref();
        let answer = answers.and_then(|answers| answers.get(QUESTION));
        let asked = request.request_state.as_deref();
        let asked = asked.and_then(|price| price.parse().ok());
        match answer.and_then(|answer| answer["action"].as_str()) {
            Some("accept") => asked.map_or(Self::NotAsked, Self::Given),
            Some(_) => Self::Declined,
            None => Self::NotAsked,
        }
    }
}

/// The price of a message that would be accepted.
pub(super) struct Price<'a> {
    pub(super) total: Money,
    parts: u64,
    recipients: u64,
    currency: &'a str,
}

impl<'a> Price<'a> {
    /// Reads the result of a preview. A message that would be refused costs nothing.
    pub(super) fn read(preview: &Value, currency: &'a str) -> Option<Self> {
        let is_accepted = preview["accepted"] == true;
        let cost = &preview["cost"];
        let total = cost["totalPrice"].as_str()?.parse().ok()?;
        is_accepted.then_some(Self {
            total,
            parts: preview["parts"].as_u64()?,
            recipients: cost["recipientCount"].as_u64()?,
            currency,
        })
    }

    /// The form has no fields: the user accepts or declines.
    pub(super) fn question(&self) -> InputRequiredResult {
        let (parts, recipients) = (self.parts, self.recipients);
        let message = format!(
            "Send this SMS for {} {}? SMS parts: {parts}, recipients: {recipients}.",
            self.total, self.currency
        );
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        };
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
        InputRequiredResult::new(Some(questions), Some(self.total.to_string()))
    }
}

/// The error of a call that the user declined.
pub(super) fn declined() -> Envelope {
    let message = "The user did not agree to pay for this SMS. This call sent and charged nothing.";
    Envelope::new(ErrorCode::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn consent_is_for_the_price_that_was_asked_about() {
        let given = |price: &str| Consent::Given(price.parse().expect(price));
        for (answers, state, expected) in [
            (
                json!({ "cost": { "action": "accept" } }),
                Some("1.50"),
                given("1.50"),
            ),
            (
                json!({ "cost": { "action": "accept" } }),
                None,
                Consent::NotAsked,
            ),
            (
                json!({ "cost": { "action": "accept" } }),
                Some("much"),
                Consent::NotAsked,
            ),
            (
                json!({ "cost": { "action": "decline" } }),
                Some("1.50"),
                Consent::Declined,
            ),
            (
                json!({ "cost": { "action": "cancel" } }),
                None,
                Consent::Declined,
            ),
            (json!({ "cost": "accept" }), Some("1.50"), Consent::NotAsked),
            (
                json!({ "other": { "action": "accept" } }),
                Some("1.50"),
                Consent::NotAsked,
            ),
            (json!({}), None, Consent::NotAsked),
        ] {
            let mut request = CallToolRequestParams::new("send_sms");
            request.input_responses = serde_json::from_value(answers.clone()).ok();
            request.request_state = state.map(str::to_owned);
            assert_eq!(Consent::read(&request), expected, "{answers} {state:?}");
        }
    }

    #[test]
    fn a_question_names_the_price() {
        let mut preview = json!({
            "accepted": true, "parts": 4,
            "cost": { "totalPrice": "1.50", "recipientCount": 2 },
        });
        let price = Price::read(&preview, "EUR").expect("a price");
        let question = serde_json::to_value(price.question()).expect("JSON");
        let expected = json!({
            "resultType": "input_required",
            "requestState": "1.50",
            "inputRequests": { "cost": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "Send this SMS for 1.50 EUR? SMS parts: 4, recipients: 2.",
                    "requestedSchema": { "type": "object", "properties": {} },
                },
            } },
        });
        assert_eq!(question, expected);
        preview["accepted"] = json!(false);
        assert!(Price::read(&preview, "EUR").is_none());
    }
}
