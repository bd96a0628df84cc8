//! A client that sends faster than its user may.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Instant;

use testkit::Backend;

use super::raw::{BIND_TRANSCEIVER, Client, ENQUIRE, RESPONSE, SUBMIT, Submit, pdu};
use super::{create_user, metric, start};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;

on_both_backends!(a_flood_is_throttled_and_the_rest_is_stored_once);

const RTHROTTLED: u32 = 0x58;
const PER_SECOND: usize = 1;
/// More than the window of a session.
const MESSAGES: usize = 300;

fn a_flood_is_throttled_and_the_rest_is_stored_once(backend: Backend) {
    let (service, address) = start(backend, "");
    let limit = ["--max-per-second", &PER_SECOND.to_string()];
    let password = create_user(&service.server, "acme", &limit);
    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let began = Instant::now();
    let sequences = 1000..1000 + u32::try_from(MESSAGES).expect("few");
    let flood: Vec<u8> = sequences
        .clone()
        .flat_map(|sequence| {
            let text = format!("number {sequence}");
            let submit = Submit {
                text: text.as_bytes(),
                ..Submit::default()
            };
            pdu(SUBMIT, 0, sequence, &submit.body())
        })
        .collect();
    client.stream.write_all(&flood).expect("open");

    let mut unanswered: BTreeSet<u32> = sequences.collect();
    let mut accepted = BTreeSet::new();
    while !unanswered.is_empty() {
        let answer = client.read().expect("the session goes on");
        assert_eq!(answer.command, SUBMIT | RESPONSE, "{answer:?}");
        assert!(unanswered.remove(&answer.sequence), "{answer:?}");
        match answer.status {
            0 => assert!(accepted.insert(answer.text()), "{answer:?}"),
            status => assert_eq!(status, RTHROTTLED, "{answer:?}"),
        }
    }
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("few") + 1;
    let most = PER_SECOND * (seconds + 1);
    assert!(
        (PER_SECOND..=most).contains(&accepted.len()),
        "{} in {seconds} s",
        accepted.len()
    );
    let count = |count: usize| u64::try_from(count).expect("few");
    let throttled = count(MESSAGES - accepted.len());
    assert!(throttled > 0, "too slow for a flood: {seconds} s");
    let counted = "switchboard_smpp_submits_total{result=\"throttled\"}";
    assert_eq!(metric(&service, counted), Some(throttled));
    assert_eq!(service.stored(), count(accepted.len()));
    for id in &accepted {
        let found = service.get(&format!("/sms/status/{id}"));
        assert_eq!(found.status, 200, "{id}: {}", found.text());
    }

    // The session goes on, and what was throttled can be sent again later.
    assert_eq!(client.ask(ENQUIRE, b"").command, ENQUIRE | RESPONSE);
    wait_for("a message is accepted again", || {
        let answer = client.ask(SUBMIT, &Submit::default().body());
        (answer.status == 0).then_some(())
    });
    assert_eq!(service.stored(), count(accepted.len() + 1));
    service.check_health();
}
