//! An SMSC that fails in every possible way: nothing is lost, every message gets an answer, and the links recover.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Code;
use domain::delivery::{CarrierAnswer, QueuedMessage};
use outbound::SmppSettings;
use testkit::smsc::{Action, Receipt, Smsc, Submit};
use tokio::task::JoinSet;

use super::setup::{
    connected, queued, settings, submit, submit_all_until_taken, submit_until_taken, taken,
    until_up,
};

/// A script with this action for the first message, and answers for all others.
fn first(act: Vec<Action>) -> impl Fn(&Submit) -> Vec<Action> + Send + Sync {
    move |submit| match submit.number {
        0 => act.clone(),
        _ => vec![Action::Answer],
    }
}

#[tokio::test]
async fn any_lost_link_returns_its_message_and_reconnects() {
    let absurd = vec![0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1];
    let too_short = vec![0, 0, 0, 3, 0, 0, 0, 5];
    let cases = [
        ("hangs up", vec![Action::HangUp]),
        (
            "dies within a PDU",
            vec![Action::HalfAnswer, Action::HangUp],
        ),
        (
            "unbinds",
            vec![
                Action::Unbind,
                Action::Wait(Duration::from_millis(20)),
                Action::HangUp,
            ],
        ),
        ("an absurd length", vec![Action::Octets(absurd)]),
        ("an impossible length", vec![Action::Octets(too_short)]),
        (
            "text in place of SMPP",
            vec![Action::Octets(b"500 go away\r\n".repeat(10))],
        ),
    ];
    for (name, acts) in cases {
        let smsc = Smsc::builder().on_submit(first(acts)).start();
        let (carrier, _) = connected(settings(&smsc)).await;
        assert_eq!(
            submit(&carrier, &queued(1, "Hi")).await,
            CarrierAnswer::Unknown,
            "{name}"
        );
        smsc.wait_until(name, |log| log.binds.len() == 2).await;
        until_up(&carrier).await;
        assert_eq!(
            submit(&carrier, &queued(1, "Hi")).await,
            taken(1_000_001),
            "{name}"
        );
    }
}

#[tokio::test]
async fn malformed_pdus_between_answers_do_no_harm() {
    let unknown = vec![
        0, 0, 0, 20, 0, 0, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0, 0, 77, 1, 2, 3, 4,
    ];
    let stray = vec![0, 0, 0, 17, 0x80, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0];
    let bad_body = vec![0, 0, 0, 18, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 78, b'x', b'y'];
    let nack = vec![0, 0, 0, 16, 0x80, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0xFF, 0xFE];
    for (name, octets) in [
        ("an unknown command", unknown),
        ("an answer to nothing", stray),
        ("a message that ends too early", bad_body),
        ("a nack of nothing", nack),
    ] {
        let script = first(vec![Action::Octets(octets), Action::Answer]);
        let smsc = Smsc::builder().on_submit(script).start();
        let (carrier, _) = connected(settings(&smsc)).await;
        assert_eq!(
            submit(&carrier, &queued(1, "Hi")).await,
            taken(1_000_000),
            "{name}"
        );
        assert_eq!(
            submit(&carrier, &queued(2, "Hi")).await,
            taken(1_000_001),
            "{name}"
        );
        assert_eq!(smsc.log().binds.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn waiting_for_an_answer_ends_at_the_configured_time() {
    let smsc = Smsc::builder().on_submit(first(Vec::new())).start();
    let hasty = SmppSettings {
        response_timeout: Duration::from_millis(200),
        late_answer: Duration::from_millis(600),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(hasty).await;
    let since = Instant::now();
    assert_eq!(
        submit(&carrier, &queued(1, "Hi")).await,
        CarrierAnswer::Unknown
    );
    let waited = since.elapsed();
    assert!(waited >= Duration::from_millis(600), "{waited:?}");
    submit_until_taken(&carrier, &queued(1, "Hi")).await;
    assert_eq!(smsc.log().submit_count, 2);
    assert_eq!(smsc.log().binds.len(), 1, "the link is alive");
}

#[tokio::test]
async fn a_late_answer_counts_and_nothing_is_sent_twice() {
    const MESSAGES: u64 = 20;
    let smsc = Smsc::builder()
        .on_submit(|_| vec![Action::Wait(Duration::from_millis(700)), Action::Answer])
        .start();
    let hasty = SmppSettings {
        response_timeout: Duration::from_millis(200),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(hasty).await;
    let answers = submit_all(&carrier, 1..=MESSAGES).await;
    let is_taken = |answer: &CarrierAnswer| matches!(answer, CarrierAnswer::Taken(_));
    assert!(answers.values().all(is_taken), "{answers:?}");
    let log = smsc.log();
    assert_eq!((log.submit_count as u64, log.binds.len()), (MESSAGES, 1));
}

#[tokio::test]
async fn a_part_that_waits_for_a_late_answer_stays_in_the_window() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Wait(Duration::from_millis(700)), Action::Answer],
            _ => vec![Action::Answer],
        })
        .start();
    let narrow = SmppSettings {
        response_timeout: Duration::from_millis(100),
        window: 1,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(narrow).await;
    submit_all(&carrier, 1..=2).await;
    let submits = smsc.log().submits;
    let pause = submits[1].at.duration_since(submits[0].at);
    assert!(pause >= Duration::from_millis(700), "{pause:?}");
}

#[tokio::test]
async fn after_its_last_attempt_without_an_answer_a_message_waits_for_a_receipt() {
    let smsc = Smsc::builder().on_submit(|_| vec![Action::HangUp]).start();
    let (carrier, _) = connected(settings(&smsc)).await;
    assert_eq!(
        submit(&carrier, &queued(7, "Hi")).await,
        CarrierAnswer::Unknown
    );
    until_up(&carrier).await;
    let again = QueuedMessage {
        unknown_tries: 1,
        ..queued(7, "Hi")
    };
    let unanswered = CarrierAnswer::Taken(vec!["unanswered-7-1".to_owned()]);
    assert_eq!(submit(&carrier, &again).await, unanswered);
    assert_eq!(smsc.log().submit_count, 2);
}

#[tokio::test]
async fn a_refused_repetition_says_nothing_about_the_first_attempt() {
    for (name, tries, expected) in [
        (
            "the first attempt",
            0,
            CarrierAnswer::Refused(Code::INVALID_NUMBER),
        ),
        (
            "a repetition",
            1,
            CarrierAnswer::Taken(vec!["unanswered-7-1".to_owned()]),
        ),
    ] {
        let smsc = Smsc::builder()
            .on_submit(|_| vec![Action::Refuse(0x0b)])
            .start();
        let (carrier, _) = connected(settings(&smsc)).await;
        let message = QueuedMessage {
            unknown_tries: tries,
            ..queued(7, "Hi")
        };
        assert_eq!(submit(&carrier, &message).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_part_without_an_answer_is_sent_again_alone() {
    // The first part is answered, then the link dies before the second one.
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::WaitForSubmits(2), Action::Answer, Action::HangUp],
            1 => Vec::new(),
            _ => vec![Action::Answer],
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answer = submit(&carrier, &queued(1, &"a".repeat(161))).await;
    let names = ["1000000", "1000002"].map(str::to_owned);
    assert_eq!(answer, CarrierAnswer::Taken(names.to_vec()));
    let submits = smsc.log().submits;
    let parts: Vec<u8> = submits.iter().map(|s| s.short_message[5]).collect();
    assert_eq!(parts, [1, 2, 2]);
}

#[tokio::test]
async fn a_silent_link_is_detected_and_reconnected() {
    let smsc = Smsc::builder()
        .on_submit(first(vec![Action::StopAnswering]))
        .start();
    let hasty = SmppSettings {
        response_timeout: Duration::from_millis(200),
        enquire_every: Duration::from_millis(100),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(hasty).await;
    assert_eq!(
        submit(&carrier, &queued(1, "Hi")).await,
        CarrierAnswer::Unknown
    );
    smsc.wait_until("it binds again", |log| log.binds.len() == 2)
        .await;
    submit_until_taken(&carrier, &queued(1, "Hi")).await;
    assert_eq!(smsc.log().submit_count, 2);
}

/// Sends many messages at once and returns the answers by ID.
async fn submit_all(
    carrier: &Arc<outbound::SmppCarrier>,
    ids: impl Iterator<Item = u64>,
) -> HashMap<u64, CarrierAnswer> {
    let mut tasks = JoinSet::new();
    for id in ids {
        let carrier = carrier.clone();
        tasks.spawn(async move { (id, submit(&carrier, &queued(id, "Hi")).await) });
    }
    tasks.join_all().await.into_iter().collect()
}

#[tokio::test]
async fn answers_out_of_order_find_their_messages() {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            // The later a message came, the earlier it is answered.
            let wait = Duration::from_millis(100 - 5 * submit.number as u64);
            vec![
                Action::WaitForSubmits(20),
                Action::Wait(wait),
                Action::Answer,
            ]
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answers = submit_all(&carrier, 1..=20).await;
    for submit in smsc.log().submits {
        let id: u64 = submit.destination.2[4..].parse().expect("the ID");
        assert_eq!(answers[&id], taken(submit.id()), "message {id}");
    }
}

#[tokio::test]
async fn octets_may_come_one_by_one() {
    let smsc = Smsc::builder()
        .one_octet_at_a_time()
        .on_submit(|submit| {
            let receipt = Receipt::delivered(submit.id().to_string());
            vec![Action::Answer, Action::Receipt(receipt)]
        })
        .start();
    let (carrier, sink) = connected(settings(&smsc)).await;
    let answers = submit_all(&carrier, 1..=10).await;
    assert!(
        answers
            .values()
            .all(|answer| matches!(answer, CarrierAnswer::Taken(_)))
    );
    assert_eq!(sink.wait_for(10).await.len(), 10);
}

#[tokio::test]
async fn an_unbind_in_a_full_window_gives_every_message_an_answer() {
    const WINDOW: usize = 10;
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            // Some are answered before the link ends.
            0..4 => vec![Action::WaitForSubmits(WINDOW), Action::Answer],
            9 => vec![
                Action::Wait(Duration::from_millis(30)),
                Action::Unbind,
                Action::Wait(Duration::from_millis(30)),
                Action::HangUp,
            ],
            10.. => vec![Action::Answer],
            _ => Vec::new(),
        })
        .start();
    let chosen = SmppSettings {
        window: WINDOW,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(chosen).await;
    let answers = submit_all(&carrier, 1..=10).await;
    let count = |wanted: fn(&CarrierAnswer) -> bool| answers.values().filter(|a| wanted(a)).count();
    assert_eq!(count(|answer| matches!(answer, CarrierAnswer::Taken(_))), 4);
    assert_eq!(count(|answer| *answer == CarrierAnswer::Unknown), 6);
    until_up(&carrier).await;
    for (id, answer) in answers {
        if answer == CarrierAnswer::Unknown {
            submit_until_taken(&carrier, &queued(id, "Hi")).await;
        }
    }
    assert_eq!(
        smsc.log().submit_count,
        16,
        "only messages without an answer are sent again"
    );
}

#[tokio::test]
async fn parts_not_yet_sent_take_another_link() {
    // The window of one is full when the link dies, so the waiting messages are not sent.
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.connection {
            0 => vec![Action::Wait(Duration::from_millis(100)), Action::HangUp],
            _ => vec![Action::Wait(Duration::from_millis(50)), Action::Answer],
        })
        .start();
    let two = SmppSettings {
        binds: 2,
        window: 1,
        reconnect_after: Duration::from_mins(1),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(two).await;
    let answers = submit_all(&carrier, 1..=6).await;
    let lost = answers
        .values()
        .filter(|answer| **answer == CarrierAnswer::Unknown)
        .count();
    assert_eq!(lost, 1, "one was under way on the lost link: {answers:?}");
    let log = smsc.log();
    assert_eq!(log.submit_count, 6, "and nothing was sent twice");
}

/// How often each message reached the SMSC.
fn copies(smsc: &Smsc) -> HashMap<String, usize> {
    let mut copies = HashMap::new();
    for submit in smsc.log().submits {
        *copies.entry(submit.destination.2).or_default() += 1;
    }
    copies
}

#[tokio::test]
async fn through_many_faults_nothing_is_lost_and_few_messages_are_repeated() {
    const MESSAGES: u64 = 400;
    const WINDOW: usize = 10;
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number % 97 {
            13 => vec![Action::HangUp],
            31 => vec![Action::HalfAnswer, Action::HangUp],
            47 => vec![Action::Unbind, Action::Answer],
            53 => vec![Action::Refuse(0x08)],
            71 => vec![Action::Octets(vec![0xFF; 16])],
            89 => vec![Action::Wait(Duration::from_millis(20)), Action::Answer],
            _ => vec![Action::Answer],
        })
        .start();
    let two = SmppSettings {
        binds: 2,
        window: WINDOW / 2,
        reconnect_after: Duration::from_millis(2),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(two).await;
    let attempts = submit_all_until_taken(&carrier, 1..=MESSAGES).await;
    let copies = copies(&smsc);
    assert_eq!(copies.len() as u64, MESSAGES, "every message arrived");
    let log = smsc.log();
    let losses = log.binds.len() - 2;
    assert!(losses >= 10, "the faults happened: {losses}");
    let refused = log.submits.iter().filter(|s| s.number % 97 == 53).count();
    let twice = log.submit_count - copies.len() - refused;
    assert!(
        twice <= losses * WINDOW / 2,
        "{twice} copies over {losses} lost links"
    );
    assert!(
        attempts >= log.submit_count,
        "every copy comes from an attempt"
    );
}
