//! An SMSC that answers after the response timeout.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use testkit::receiver::Receiver;
use testkit::smsc::{Act, Receipt, Smsc};
use testkit::{Backend, PATIENCE};

use super::lone_node::{LoneNode, verdict};
use super::scenario::Ran;
use crate::faults::subject::builder;

/// Beyond the 10 s that are the default of `response_timeout_s`.
const ANSWERED_AFTER: Duration = Duration::from_secs(12);
/// The messages of a cycle.
const MESSAGES: usize = 20;
const FIRST: u64 = 37_120_001_000;
const DELIVERED: (u64, u64) = (1, 0);

/// Each cycle is one wave of messages. A carrier's settings are the defaults.
pub(super) fn awaited(cycles: usize) -> Ran {
    let mut breaches = Vec::new();
    for backend in Backend::ALL {
        let found = wait_for_answers(backend, cycles);
        breaches.extend(found.iter().map(|breach| format!("{backend:?}: {breach}")));
    }
    let messages = Backend::ALL.len() * cycles * MESSAGES;
    Ran::Through(cycles, verdict(messages, breaches))
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
            Act::Wait(ANSWERED_AFTER),
            Act::Answer,
            Act::Receipt(receipt),
        ]
    });
    let smsc = smsc.start();
    let node = LoneNode::start(builder(backend).config(carrier(&smsc)));
    let (account, receiver) = (node.account("crowd"), Receiver::start());
    let mut breaches = Vec::new();
    for cycle in 1..=cycles {
        let numbers: Vec<u64> = (FIRST + (cycle * MESSAGES) as u64..)
            .take(MESSAGES)
            .collect();
        account.send(&numbers, &json!({ "dlrUrl": receiver.url("/dlr") }));
        if !receiver.wait_for(cycle * MESSAGES, PATIENCE) {
            breaches.push(format!(
                "{} of {} were reported",
                receiver.count(),
                cycle * MESSAGES
            ));
        }
    }
    let submits = submits.lock().unwrap_or_else(PoisonError::into_inner);
    let again = submits.iter().filter(|(_, submits)| **submits > 1).count();
    if again > 0 || submits.len() != cycles * MESSAGES {
        breaches.push(format!(
            "the SMSC got {} messages, {again} of them more than once",
            submits.len()
        ));
    }
    let rows = node.books().rows;
    let other = rows.iter().filter(|row| row.end != Some(DELIVERED)).count();
    if other > 0 {
        breaches.push(format!(
            "{other} of {} did not end as delivered",
            rows.len()
        ));
    }
    breaches
}

fn carrier(smsc: &Smsc) -> String {
    format!(
        "[[carrier]]\nname = \"late\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n",
        smsc.addr()
    )
}
