//! Alerts and notifications in plain words.

use std::fmt::Write as _;

use domain::alert::{Alert, Level, Topic};
use serde_json::Value;

fn field<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or("unknown")
}

/// What is wrong, in a sentence without a full stop.
pub fn sentence(alert: &Alert) -> String {
    let data: Value = serde_json::from_str(&alert.data).unwrap_or_default();
    match (alert.topic, alert.level) {
        (Topic::Carrier, _) => match data["reason"].as_str() {
            Some(reason) => format!("Carrier {} is down: {reason}", field(&data, "carrier")),
            None => format!("Carrier {} is down", field(&data, "carrier")),
        },
        (Topic::Balance, Level::Worse) => {
            format!("The balance of {} is used up", field(&data, "account"))
        }
        (Topic::Balance, _) => format!(
            "The balance of {} is low: {}",
            field(&data, "account"),
            field(&data, "balance")
        ),
        (Topic::CallbackHost, _) => {
            let host = field(&data, "host");
            let (waiting, since) = (data["waiting"].as_u64(), data["since"].as_str());
            match waiting.zip(since) {
                Some((1, since)) => {
                    format!("{host} does not accept callbacks: 1 waits, since {since}")
                }
                Some((waiting, since)) => format!(
                    "{host} does not accept callbacks: {waiting} wait, the first since {since}"
                ),
                None => format!("{host} does not accept callbacks"),
            }
        }
        (Topic::Sender, _) => format!(
            "The sender ID {} of {} waits for a review",
            field(&data, "sender"),
            field(&data, "account")
        ),
        (Topic::Node, _) => format!("Node {} was lost", field(&data, "node")),
        (Topic::Disk, _) => format!("The disk of {} is nearly full", field(&data, "host")),
        (Topic::Certificate, _) => format!(
            "The certificate of {} expires on {}",
            field(&data, "host"),
            field(&data, "expires")
        ),
        (Topic::Verify, _) => format!(
            "Codes of {} to {} are slowed: nearly none is entered",
            field(&data, "account"),
            field(&data, "prefix")
        ),
        (Topic::DeliveryRate, _) => format!(
            "The delivery rate of {} is falling: {} % since yesterday, {} % in the 7 days before",
            account_or_all(&data),
            data["rate"],
            data["rateBefore"]
        ),
    }
}

/// What to do about it, or what happens next.
pub const fn advice(topic: Topic, level: Level) -> &'static str {
    match (topic, level) {
        (Topic::Carrier, _) => "Its messages wait, or use the next carrier.",
        (Topic::Balance, Level::Worse) => {
            "Messages that cost money are refused until the account is topped up."
        }
        (Topic::Balance, _) => "Top up the account before its balance is used up.",
        (Topic::CallbackHost, _) => {
            "Correct the receiver; waiting callbacks are sent again automatically."
        }
        (Topic::Sender, _) => "Approve or reject it.",
        (Topic::Node, _) => "It crashed, was killed, or cannot reach the database. See its log.",
        (Topic::Disk, _) => "Free some space, or use a larger disk.",
        (Topic::Certificate, _) => "Renew it.",
        (Topic::Verify, _) => "Check that nobody abuses the form that asks for codes.",
        (Topic::DeliveryRate, _) => "See the errors of failed messages.",
    }
}

fn account_or_all(data: &Value) -> &str {
    data["account"].as_str().unwrap_or("all accounts together")
}

/// Subject and text of the e-mail with a notification.
pub(crate) fn mail(body: &str) -> (String, String) {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let (event, data) = (field(&body, "type"), &body["data"]);
    let summary = match event {
        "carrier.down" => format!("carrier {} is down", field(data, "carrier")),
        "carrier.up" => format!("carrier {} is up again", field(data, "carrier")),
        "balance.low" => format!("the balance of {} is low", field(data, "account")),
        "balance.empty" => format!("the balance of {} is used up", field(data, "account")),
        "callbacks.host_down" => format!("{} does not accept callbacks", field(data, "host")),
        "sender.pending" => format!("sender ID {} waits for a review", field(data, "sender")),
        "node.lost" => format!("node {} was lost", field(data, "node")),
        "disk.low" => format!("the disk of {} is nearly full", field(data, "host")),
        "certificate.expiring" => format!("the certificate of {} expires", field(data, "host")),
        "verify.slowed" => format!(
            "codes of {} to {} are slowed",
            field(data, "account"),
            field(data, "prefix")
        ),
        "delivery.falling" => format!("the delivery rate of {} is falling", account_or_all(data)),
        other => other.to_owned(),
    };
    let mut text = format!("{}\n\n", capitalized(&summary));
    for (name, value) in data.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}: {value}");
    }
    let _ = writeln!(text, "time: {}\nevent: {event}", field(&body, "timestamp"));
    // A subject is one line.
    let summary = summary.replace(char::is_control, " ");
    (format!("[Switchboard] {summary}"), text)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::alert::Event;

    #[test]
    fn a_failing_receiver_is_named_with_what_waits() {
        for (data, expected) in [
            (
                r#"{"host":"crm.example","waiting":12,"since":"2026-11-17T10:00:00Z"}"#,
                "crm.example does not accept callbacks: 12 wait, the first since 2026-11-17T10:00:00Z",
            ),
            (
                r#"{"host":"crm.example","waiting":1,"since":"2026-11-17T10:00:00Z"}"#,
                "crm.example does not accept callbacks: 1 waits, since 2026-11-17T10:00:00Z",
            ),
            (
                r#"{"host":"crm.example"}"#,
                "crm.example does not accept callbacks",
            ),
        ] {
            let alert = Alert {
                topic: Topic::CallbackHost,
                subject: "7 crm.example".to_owned(),
                account: None,
                level: Level::Bad,
                since: domain::Timestamp::UNIX_EPOCH,
                told: Level::Bad,
                told_at: [None; 3],
                data: data.to_owned(),
            };
            assert_eq!(sentence(&alert), expected);
        }
    }

    #[test]
    fn every_event_has_words() {
        for event in Event::ALL {
            let body = format!(
                r#"{{"type":"{event}","timestamp":"2026-11-17T10:00:00Z","data":{{"carrier":"a\nb","account":"acme","host":"h"}}}}"#
            );
            let (subject, text) = mail(&body);
            assert!(!subject.contains(event.name()), "{subject}");
            assert!(!subject.contains('\n'), "{subject}");
            assert!(text.contains(&format!("event: {event}")), "{text}");
        }
    }
}
