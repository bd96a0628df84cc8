//! An SMSC that answers after the response timeout.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use testkit::receiver::Receiver;
use testkit::smsc::{Action, Receipt, Smsc};
use testkit::{Backend, TEST_TIMEOUT};

use super::scenario::ScenarioResult;
use super::single_node::{SingleNode, verdict};
use crate::faults::test_service::builder;

/// Beyond the 10 s that are the default of `response_timeout_s`.
const ANSWERED_AFTER: Duration = Duration::from_secs(12);
/// The messages of a cycle.
const MESSAGES: usize = 20;
const FIRST: u64 = 37_120_001_000;
const DELIVERED: (u64, u64) = (1, 0);

/// Each cycle is one batch of messages. The carrier has default settings.
pub(super) fn awaited(cycles: usize) -> ScenarioResult {
    let mut violations = Vec::new();
    for backend in Backend::ALL {
        let found = wait_for_answers(backend, cycles);
        violations.extend(
            found
                .iter()
                .map(|violation| format!("{backend:?}: {violation}")),
        );
    }
    let messages = Backend::ALL.len() * cycles * MESSAGES;
    ScenarioResult::Completed(cycles, verdict(messages, violations))
}

fn wait_for_answers(backend: Backend, cycles: usize) -> Vec<String> {
    let submits: Arc<Mutex<HashMap<u64, usize>>> = Arc::default();
    let counted = submits.clone();
    let smsc = Smsc::builder().on_submit(move |submit| {
        let to = submit.destination.2.parse().unwrap_or(0);
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.entry(to).or_default() += 1;
        let receipt = Receipt::delivered(submit.id().to_string());
        vec![
            Action::Wait(ANSWERED_AFTER),
            Action::Answer,
            Action::Receipt(receipt),
        ]
    });
    let smsc = smsc.start();
    let node = SingleNode::start(builder(backend).config(carrier(&smsc)));
    let (account, receiver) = (node.account("acme"), Receiver::start());
    let mut violations = Vec::new();
    for cycle in 1..=cycles {
        let numbers: Vec<u64> = (FIRST + (cycle * MESSAGES) as u64..)
            .take(MESSAGES)
            .collect();
        account.send(&numbers, &json!({ "dlrUrl": receiver.url("/dlr") }));
        if !receiver.wait_for(cycle * MESSAGES, TEST_TIMEOUT) {
            violations.push(format!(
                "{} of {} were reported",
                receiver.count(),
                cycle * MESSAGES
            ));
        }
    }
    let submits = submits.lock().unwrap_or_else(PoisonError::into_inner);
    let again = submits.iter().filter(|(_, submits)| **submits > 1).count();
    if again > 0 || submits.len() != cycles * MESSAGES {
        violations.push(format!(
            "the SMSC got {} messages, {again} of them more than once",
            submits.len()
        ));
    }
    let rows = node.contents().rows;
    let other = rows
        .iter()
        .filter(|row| row.final_state != Some(DELIVERED))
        .count();
    if other > 0 {
        violations.push(format!(
            "{other} of {} did not end as delivered",
            rows.len()
        ));
    }
    violations
}

fn carrier(smsc: &Smsc) -> String {
    format!(
        "[[carrier]]\nname = \"late\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n",
        smsc.addr()
    )
}
