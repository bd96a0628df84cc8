//! Several messages in one request, for providers that take several recipients.
//!
//! There is no waiting for a batch to fill. As many requests as the window has room for are in flight; the messages that
//! are handed over meanwhile go together in the next one. So batches grow exactly when the provider is the slower side.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::{Code, Msisdn};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::HttpCarrier;
use super::fields::{Fields, Pointer};
use super::response::{ResponseRules, Verdict};

/// How many messages a request may have, and where the answer has the result of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRules {
    pub size: usize,
    /// The list of results.
    pub results: Pointer,
    /// Within a result: the recipient. `None`: results are in the order of the request.
    pub to: Option<Pointer>,
    /// Within a result: the provider's ID of the message.
    pub id: Option<Pointer>,
    /// Within a result: the state, compared with `response.refused`.
    pub state: Option<Pointer>,
    /// Within a result: the provider's code of a refusal.
    pub error: Option<Pointer>,
}

impl BatchRules {
    /// What an answer that takes the request means for each recipient. One without a result is taken, without an ID.
    fn verdicts(
        &self,
        response: &ResponseRules,
        fields: Option<&Fields>,
        recipients: &[Msisdn],
    ) -> Vec<Verdict> {
        let results = fields.and_then(|fields| fields.get(&self.results));
        let results = results.as_deref().and_then(Value::as_array);
        let results = results.into_iter().flatten().cloned().map(Fields::Json);
        let mut results: Vec<Option<Fields>> = results.map(Some).collect();
        let verdict = |(index, to): (usize, &Msisdn)| {
            let own = match &self.to {
                None => results.get_mut(index),
                Some(pointer) => results.iter_mut().find(|result| {
                    let theirs = result.as_ref().and_then(|result| result.text(pointer));
                    theirs.is_some_and(|theirs| has_digits(&theirs, to.digits()))
                }),
            };
            match own.and_then(Option::take) {
                Some(result) => self.verdict(response, &result),
                None => Verdict::Taken(None),
            }
        };
        recipients.iter().enumerate().map(verdict).collect()
    }

    fn verdict(&self, response: &ResponseRules, result: &Fields) -> Verdict {
        let text = |pointer: Option<&Pointer>| result.text(pointer?);
        match text(self.state.as_ref()) {
            Some(state) if response.is_refused_state(&state) => {
                response.refuse(text(self.error.as_ref()))
            }
            _ => Verdict::Taken(text(self.id.as_ref())),
        }
    }
}

/// Whether a number consists of these digits, however it is written.
fn has_digits(number: &str, digits: &str) -> bool {
    let own = number.chars().filter(char::is_ascii_digit);
    own.eq(digits.chars())
}

/// Messages that wait for a request, by what their request has apart from the items.
pub(super) struct Batches {
    size: usize,
    /// Limits the requests in flight.
    requests: Semaphore,
    waiting: Mutex<HashMap<String, VecDeque<Waiting>>>,
}

/// A message that waits for its request.
struct Waiting {
    queued: QueuedMessage,
    item: Value,
    answer: oneshot::Sender<CarrierAnswer>,
}

impl Batches {
    pub(super) fn new(size: usize, window: usize) -> Self {
        Self {
            size,
            requests: Semaphore::new((window / size).max(1)),
            waiting: Mutex::default(),
        }
    }

    fn add(&self, key: &str, waiting: Waiting) {
        let mut all = self.waiting.lock().expect("no holder panics");
        all.entry(key.to_owned()).or_default().push_back(waiting);
    }

    /// The messages for the next request; empty if others took them.
    fn take(&self, key: &str) -> Vec<Waiting> {
        let mut all = self.waiting.lock().expect("no holder panics");
        let Some(waiting) = all.get_mut(key) else {
            return Vec::new();
        };
        let count = waiting.len().min(self.size);
        let batch = waiting.drain(..count).collect();
        if waiting.is_empty() {
            all.remove(key);
        }
        batch
    }
}

impl HttpCarrier {
    /// Sends a message together with others that wait for the same request.
    pub(super) async fn submit_together(
        &self,
        batches: &Batches,
        queued: &QueuedMessage,
    ) -> CarrierAnswer {
        let report_url = self.links.report_url(queued.id);
        let values = self.values(queued, &report_url, &[]);
        let request = &self.settings.request;
        let (Some(item), Ok(key)) = (request.item(&values), request.outline(&values)) else {
            return CarrierAnswer::Declined(Code::INTERNAL);
        };
        let (answer, mut answered) = oneshot::channel();
        let queued = queued.clone();
        let waiting = Waiting {
            queued,
            item,
            answer,
        };
        batches.add(&key, waiting);
        loop {
            let permit = tokio::select! {
                biased;
                answer = &mut answered => return answer.unwrap_or(CarrierAnswer::Unknown),
                permit = batches.requests.acquire() => permit.expect("never closed"),
            };
            let batch = batches.take(&key);
            if batch.is_empty() {
                drop(permit);
                // Another task sends this message.
                return answered.await.unwrap_or(CarrierAnswer::Unknown);
            }
            // One of them may be the reason for a refusal of all.
            for alone in self.send_batch(batch).await {
                self.send_batch(vec![alone]).await;
            }
        }
    }

    /// Sends messages in one request and answers each. Returns those that must be sent one by one.
    async fn send_batch(&self, batch: Vec<Waiting>) -> Vec<Waiting> {
        let items: Vec<Value> = batch.iter().map(|one| one.item.clone()).collect();
        let Some(first) = batch.first() else {
            return batch;
        };
        let report_url = self.links.report_url(first.queued.id);
        let values = self.values(&first.queued, &report_url, &items);
        let Ok(request) = self.settings.request.build(&values) else {
            answer_all(batch, &CarrierAnswer::Declined(Code::INTERNAL));
            return Vec::new();
        };
        let answer = match self.client.send(request).await {
            Ok(answer) => answer,
            Err(why) => {
                self.health.record_failure(&why.to_string());
                for one in batch {
                    let answer = self.unanswered(&why, &one.queued).await;
                    one.reply(answer);
                }
                return Vec::new();
            }
        };
        let verdict = self.settings.response.judge(&answer);
        self.record(&verdict, &answer);
        if matches!(verdict, Verdict::Refused { .. }) && batch.len() > 1 {
            return batch;
        }
        let verdicts = match (&verdict, &self.settings.batch) {
            (Verdict::Taken(_), Some(rules)) => {
                let recipients: Vec<Msisdn> = batch.iter().map(|one| one.queued.to).collect();
                rules.verdicts(&self.settings.response, answer.fields.as_ref(), &recipients)
            }
            _ => vec![verdict; batch.len()],
        };
        for (one, verdict) in batch.into_iter().zip(verdicts) {
            let answer = self.conclude(verdict, &answer, &one.queued).await;
            one.reply(answer);
        }
        Vec::new()
    }
}

impl Waiting {
    fn reply(self, answer: CarrierAnswer) {
        if self.answer.send(answer).is_err() {
            tracing::debug!(message_id = %self.queued.id, "nobody waits for the answer to a message");
        }
    }
}

fn answer_all(batch: Vec<Waiting>, answer: &CarrierAnswer) {
    for one in batch {
        one.reply(answer.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::response::Statuses;
    use super::super::rule::CodeTable;
    use super::super::samples::message;
    use super::*;

    fn pointer(text: &str) -> Option<Pointer> {
        Pointer::parse("batch", text).ok()
    }

    fn rules(to: Option<&str>) -> BatchRules {
        BatchRules {
            size: 3,
            results: pointer("/messages").expect("a pointer"),
            to: to.and_then(pointer),
            id: pointer("/id"),
            state: pointer("/status"),
            error: pointer("/error"),
        }
    }

    fn response() -> ResponseRules {
        let statuses = |text: &str| Statuses::parse("response", &[text.to_owned()]);
        let errors = BTreeMap::from([("30".to_owned(), 31)]);
        ResponseRules {
            taken: statuses("2xx").expect("statuses"),
            later: statuses("5xx").expect("statuses"),
            id: None,
            id_after: None,
            state: None,
            refused: vec!["rejected".to_owned()],
            refused_text: Vec::new(),
            error: None,
            error_after: None,
            errors: CodeTable::parse("response.errors", &errors).expect("codes"),
        }
    }

    fn numbers() -> [Msisdn; 3] {
        ["+37120000001", "+37120000002", "+37120000001"]
            .map(|number| Msisdn::parse(number).expect("a number"))
    }

    #[test]
    fn each_recipient_has_its_result() {
        let taken = |id: &str| Verdict::Taken(Some(id.to_owned()));
        let missing = Verdict::Taken(None);
        let refused = |code, theirs: &str| Verdict::Refused {
            code: Code::new(code).expect("a code"),
            theirs: Some(theirs.to_owned()),
        };
        let unordered = json!({ "messages": [
            { "to": "37120000002", "status": "REJECTED", "error": 30 },
            { "to": "+371 20000001", "status": "ok", "id": "a" },
            { "to": "37129999999", "id": "x" },
            { "to": "37120000001", "id": "b" },
        ] });
        let ordered =
            json!({ "messages": [{ "id": "a" }, { "status": "rejected", "error": "9" }] });
        for (to, body, expected) in [
            (
                Some("/to"),
                unordered,
                [taken("a"), refused(31, "30"), taken("b")],
            ),
            (
                None,
                ordered,
                [taken("a"), refused(8, "9"), missing.clone()],
            ),
            (
                None,
                json!({ "messages": 7 }),
                [missing.clone(), missing.clone(), missing.clone()],
            ),
        ] {
            let fields = Fields::Json(body);
            let verdicts = rules(to).verdicts(&response(), Some(&fields), &numbers());
            assert_eq!(verdicts, expected, "{fields:?}");
        }
        let verdicts = rules(None).verdicts(&response(), None, &numbers());
        assert_eq!(verdicts, vec![missing; 3]);
    }

    #[test]
    fn batches_are_bounded_and_in_order() {
        let batches = Batches::new(2, 5);
        assert_eq!(batches.requests.available_permits(), 2);
        for text in ["1", "2", "3"] {
            let (answer, _) = oneshot::channel();
            let waiting = Waiting {
                queued: message(text),
                item: json!(text),
                answer,
            };
            batches.add("a", waiting);
        }
        let take = |key| {
            let batch = batches.take(key).into_iter();
            batch.map(|one| one.queued.text).collect::<Vec<_>>()
        };
        assert!(take("b").is_empty(), "another request");
        assert_eq!(take("a"), ["1", "2"]);
        assert_eq!(take("a"), ["3"]);
        assert!(take("a").is_empty());
    }
}
