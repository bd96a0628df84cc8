use domain::delivery::{Claim, QueuedMessage};
use domain::message::text::Shape;
use domain::{
    AccountId, Action, ActionTitle, CallbackUrl, ImageUrl, Interactive, MessageId, Msisdn,
    Originator, Priority,
};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const REPORT: &str = "https://sms.example/api/carriers/up/reports/7/";

fn now() -> Timestamp {
    Timestamp::from_second(1_731_672_000).expect("in range")
}

fn requests_to(report_url: &str) -> RequestBuilder {
    let url = report_url.parse().expect("a URL");
    RequestBuilder::new("up", &url, ProofKey::new(b"sb_one"))
}

fn requests() -> RequestBuilder {
    requests_to("https://sms.example/api/")
}

fn sms(text: &str) -> QueuedMessage {
    of_shape(text, measure(text).expect("a text"))
}

fn of_shape(text: &str, shape: Shape) -> QueuedMessage {
    QueuedMessage {
        id: MessageId::new(7).expect("in range"),
        account: AccountId::new(1).expect("in range"),
        channel: Channel::Sms,
        to: Msisdn::parse("+37120000001").expect("a number"),
        from: Originator::parse("Acme").ok(),
        text: text.to_owned(),
        interactive: None,
        shape,
        udh: None,
        priority: Priority::Normal,
        test_mode: None,
        notice: false,
        expires_at: now() + SignedDuration::from_hours(72),
        claim: Claim {
            due_at: now(),
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    }
}

/// A message with an encoding chosen by the caller.
fn coded(text: &str, coding: Coding) -> QueuedMessage {
    of_shape(text, Shape { coding, parts: 1 })
}

fn viber(interactive: Option<Interactive>) -> QueuedMessage {
    QueuedMessage {
        channel: Channel::Viber,
        priority: Priority::High,
        interactive,
        ..sms("Hi \"you\"")
    }
}

/// The callback URL of message 7.
fn report() -> String {
    let proof = ProofKey::new(b"sb_one").proof("up", MessageId::new(7).expect("in range"));
    format!("{REPORT}{proof}")
}

#[test]
fn bodies_are_those_of_the_contract() {
    let button = Interactive {
        action: Some(Action {
            url: CallbackUrl::parse("https://a.example/x").expect("a URL"),
            title: ActionTitle::parse("Go").expect("a label"),
        }),
        image: ImageUrl::parse("https://a.example/x.png").ok(),
    };
    let lookup = QueuedMessage {
        channel: Channel::Hlr,
        from: None,
        text: String::new(),
        ..sms("x")
    };
    let from_number = QueuedMessage {
        from: Originator::parse("37120000002").ok(),
        priority: Priority::Low,
        ..sms("Hello")
    };
    let with_header = QueuedMessage {
        udh: Some("%05%00%03%2a%02%01".parse().expect("a header")),
        ..coded("Hello", Coding::Gsm7)
    };
    let long = "a".repeat(400);
    let cases = [
        (
            "plain",
            sms("Hello"),
            "sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hello","priority":"normal","dlrUrl":"URL","expireIn":259200}"#.to_owned(),
        ),
        (
            "from a number, in the low lane",
            from_number,
            "sms",
            r#"{"to":"+37120000001","from":"+37120000002","message":"Hello","priority":"low","dlrUrl":"URL","expireIn":259200}"#.to_owned(),
        ),
        (
            "split by its sender",
            sms(&long),
            "sms",
            format!(r#"{{"to":"+37120000001","from":"Acme","message":"{long}","priority":"normal","dlrUrl":"URL","expireIn":259200}}"#),
        ),
        (
            "a coding that follows from the text",
            sms("Привет"),
            "sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Привет","priority":"normal","dlrUrl":"URL","expireIn":259200}"#.to_owned(),
        ),
        (
            "a coding that was chosen",
            coded("Hello", Coding::Ucs2),
            "sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hello","priority":"normal","coding":2,"dlrUrl":"URL","expireIn":259200}"#.to_owned(),
        ),
        (
            "octets",
            coded("\u{0}\u{ff}", Coding::Binary),
            "sms",
            "{\"to\":\"+37120000001\",\"from\":\"Acme\",\"message\":\"\\u0000ÿ\",\"priority\":\"normal\",\"coding\":1,\"dlrUrl\":\"URL\",\"expireIn\":259200}".to_owned(),
        ),
        (
            "a header",
            with_header,
            "sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hello","priority":"normal","udh":"%05%00%03%2A%02%01","coding":0,"dlrUrl":"URL","expireIn":259200}"#.to_owned(),
        ),
        (
            "Viber",
            viber(None),
            "viber",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi \"you\"","priority":"high","dlrUrl":"URL"}"#.to_owned(),
        ),
        (
            "Viber without anything besides",
            viber(Some(Interactive::default())),
            "viber",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi \"you\"","priority":"high","dlrUrl":"URL"}"#.to_owned(),
        ),
        (
            "Viber with a button and an image",
            viber(Some(button)),
            "viber",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi \"you\"","priority":"high","im":{"action":{"url":"https://a.example/x","title":"Go"},"image":{"url":"https://a.example/x.png"}},"dlrUrl":"URL"}"#.to_owned(),
        ),
        (
            "a lookup",
            lookup,
            "hlr",
            r#"{"msisdn":"+37120000001","callBackUrl":"URL"}"#.to_owned(),
        ),
    ];
    for (name, queued, path, body) in cases {
        let request = requests().build(&queued, now());
        assert_eq!(request.path, path, "{name}");
        assert_eq!(request.body, body.replace("URL", &report()), "{name}");
    }
}

#[test]
fn the_remaining_time_is_rounded_and_within_the_contract() {
    for (left, expected) in [
        (-5, 360),
        (0, 360),
        (359, 360),
        (419, 360),
        (420, 420),
        (3599, 3540),
        (3600, 3600),
        (7199, 6600),
        (21_599, 21_000),
        (21_600, 21_600),
        (259_199, 255_600),
        (432_000, 432_000),
        (31_536_000, 432_000),
    ] {
        let expires_at = now() + SignedDuration::from_secs(left);
        assert_eq!(expire_in(expires_at, now()), expected, "{left}");
    }
}

#[test]
fn a_key_is_that_of_one_message() {
    let first = requests().build(&sms("Hello"), now());
    let (start, fingerprint) = first.key.rsplit_once('-').expect("three pieces");
    assert_eq!((start, fingerprint.len()), ("up-7", 16));

    let other_id = QueuedMessage {
        id: MessageId::new(8).expect("in range"),
        ..sms("Hello")
    };
    let other_to = QueuedMessage {
        to: Msisdn::parse("+37120000002").expect("a number"),
        ..sms("Hello")
    };
    let later = now() + SignedDuration::from_hours(2);
    let new_token = RequestBuilder {
        proofs: ProofKey::new(b"sb_two"),
        ..requests()
    };
    for (name, request, is_same) in [
        (
            "the same again",
            requests().build(&sms("Hello"), now()),
            true,
        ),
        (
            "at another time",
            requests().build(&sms("Hello"), later),
            true,
        ),
        (
            "with a new token",
            new_token.build(&sms("Hello"), now()),
            true,
        ),
        ("another message", requests().build(&other_id, now()), false),
        ("another text", requests().build(&sms("Hi"), now()), false),
        (
            "another recipient",
            requests().build(&other_to, now()),
            false,
        ),
        (
            "another service",
            requests_to("https://other.example").build(&sms("Hello"), now()),
            false,
        ),
    ] {
        assert_eq!(request.key == first.key, is_same, "{name}");
    }
    assert_ne!(requests().build(&sms("Hello"), later).body, first.body);
}

#[test]
fn a_name_of_any_kind_is_fit_for_key_and_address() {
    let url = "https://sms.example/?a=b#c".parse().expect("a URL");
    let name = format!("a b/ü{}", "x".repeat(300));
    let requests = RequestBuilder::new(&name, &url, ProofKey::new(b"sb_one"));
    let request = requests.build(&sms("Hello"), now());
    assert!(
        request.key.starts_with("abx") && request.key.len() < 128,
        "{}",
        request.key
    );
    let body: serde_json::Value = serde_json::from_str(&request.body).expect("JSON");
    let address = body["dlrUrl"].as_str().expect("an address");
    let start = "https://sms.example/carriers/a%20b%2F%C3%BCx";
    assert!(address.starts_with(start), "{address}");
    assert!(CallbackUrl::parse(address).is_ok());
}

proptest! {
    #[test]
    fn every_text_makes_a_body_that_reads_back(text in "\\PC{1,80}") {
        let Ok(shape) = measure(&text) else { return Ok(()) };
        let request = requests().build(&of_shape(&text, shape), now());
        let body: serde_json::Value = serde_json::from_str(&request.body).expect("JSON");
        prop_assert_eq!(body["message"].as_str(), Some(text.as_str()));
        prop_assert_eq!(body.get("coding"), None);
    }
}
