//! Any sequence of calls has the same effect on a store as on a small model.

use std::collections::HashMap;
use std::sync::Arc;

use domain::message::{AcceptedMessages, IdempotencyClaim, MessageState, SendTime, Submission};
use domain::ports::{Accepted, Cancel, Store};
use domain::{AccountId, MessageId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use super::sample::{EVERYTHING, accept, account, at, submission};

on_both_stores!(a_store_behaves_like_the_model);

/// A request, before it has IDs.
#[derive(Debug, Clone)]
struct Request {
    recipients: u64,
    second: Option<i64>,
    key_and_body: Option<(u8, u8)>,
}

#[derive(Debug, Clone)]
enum Step {
    Accept(Vec<Request>),
    /// The index of a message so far, modulo their number.
    Cancel(usize),
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let request = (
        1_u64..4,
        option::of(10_i64..15),
        option::of((0_u8..3, 0_u8..2)),
    );
    let request = request.prop_map(|(recipients, second, key_and_body)| Request {
        recipients,
        second,
        key_and_body,
    });
    prop_oneof![
        vec(request, 1..5).prop_map(Step::Accept),
        (0_usize..40).prop_map(Step::Cancel),
        Just(Step::List),
    ]
}

/// The expected state of an account.
#[derive(Default)]
struct Model {
    messages: Vec<(MessageId, MessageState)>,
    keys: HashMap<u8, (u8, AcceptedMessages)>,
}

impl Model {
    fn accept(&mut self, submission: &Submission) -> Accepted {
        if let Some(claim) = &submission.idempotency {
            let (key, body) = (claim.key[0], claim.body[0]);
            match self.keys.get(&key) {
                Some((stored, receipt)) if *stored == body => return Accepted::Replayed(*receipt),
                Some(_) => return Accepted::KeyConflict,
                None => self.keys.insert(key, (body, submission.receipt())),
            };
        }
        let state = match submission.send {
            SendTime::Now => MessageState::Queued,
            SendTime::At(at) => MessageState::Scheduled { at },
        };
        self.messages.extend(
            submission
                .recipients
                .iter()
                .map(|recipient| (recipient.id, state)),
        );
        Accepted::Stored
    }

    fn cancel(&mut self, id: MessageId) -> Cancel {
        let message = self.messages.iter_mut().find(|(known, _)| *known == id);
        let (_, state) = message.expect("only known messages are cancelled");
        match *state {
            MessageState::Scheduled { .. } => {
                *state = MessageState::Cancelled { at: at(5) };
                Cancel::Done
            }
            other => Cancel::NotWaiting(other),
        }
    }

    fn scheduled(&self) -> Vec<MessageId> {
        let waiting = self.messages.iter().filter_map(|(id, state)| match state {
            MessageState::Scheduled { at } => Some((*at, *id)),
            _ => None,
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, id)| id).collect()
    }
}

async fn a_store_behaves_like_the_model(store: Arc<dyn Store>) {
    let runtime = Handle::current();
    let mut runner = TestRunner::new(Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = tokio::task::block_in_place(|| {
        runner.run(&vec(step(), 1..12), |steps| {
            runtime.block_on(compare(&store, steps));
            Ok(())
        })
    });
    outcome.expect("the store and the model agree");
}

/// Each run has its own account, so that all can share a database.
async fn compare(store: &Arc<dyn Store>, steps: Vec<Step>) {
    let owner = account(store.reserve_ids(1).await.expect("IDs are left").get());
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Accept(requests) => compare_accept(store, owner, &mut model, &requests).await,
            Step::Cancel(_) if model.messages.is_empty() => {}
            Step::Cancel(index) => {
                let (id, _) = model.messages[index % model.messages.len()];
                assert_eq!(
                    store.cancel(owner, id, at(5)).await.expect("answers"),
                    model.cancel(id),
                    "{id}"
                );
            }
            Step::List => compare_list(store, owner, &model).await,
        }
    }
    compare_list(store, owner, &model).await;
    for (id, state) in &model.messages {
        let found = store
            .find_message(owner, *id)
            .await
            .expect("answers")
            .expect("it is there");
        assert_eq!(found.state, *state, "{id}");
    }
}

async fn compare_accept(
    store: &Arc<dyn Store>,
    owner: AccountId,
    model: &mut Model,
    requests: &[Request],
) {
    let mut batch = Vec::new();
    for request in requests {
        let first = store
            .reserve_ids(request.recipients)
            .await
            .expect("IDs are left")
            .get();
        let claim = |(key, body)| IdempotencyClaim {
            key: [key; 32],
            body: [body; 32],
            expires_at: at(100),
        };
        batch.push(Submission {
            account: owner,
            send: request
                .second
                .map_or(SendTime::Now, |second| SendTime::At(at(second))),
            idempotency: request.key_and_body.map(claim),
            ..submission(first, request.recipients)
        });
    }
    let expected: Vec<_> = batch
        .iter()
        .map(|submission| model.accept(submission))
        .collect();
    assert_eq!(accept(store, batch).await, expected);
}

async fn compare_list(store: &Arc<dyn Store>, owner: AccountId, model: &Model) {
    let listed = store
        .list_scheduled(owner, EVERYTHING)
        .await
        .expect("answers");
    assert_eq!(
        listed.iter().map(|record| record.id).collect::<Vec<_>>(),
        model.scheduled()
    );
}
