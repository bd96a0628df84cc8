//! The data of alerts about receivers of callbacks.

use domain::alert::{Alert, Level, Topic};
use serde_json::Value;

/// What is observed, or what is stored if nearly as many callbacks wait: a count that grows all the time must not be
/// stored all the time.
pub(super) fn data(alerts: &[Alert], subject: &str, observed: &Value) -> String {
    let is_known = |alert: &&Alert| {
        alert.topic == Topic::CallbackHost && alert.level != Level::Fine && alert.subject == subject
    };
    match alerts.iter().find(is_known) {
        Some(alert) if is_near(&alert.data, observed) => alert.data.clone(),
        _ => observed.to_string(),
    }
}

fn is_near(stored: &str, observed: &Value) -> bool {
    let waiting = |data: &Value| data["waiting"].as_u64();
    let stored: Value = serde_json::from_str(stored).unwrap_or_default();
    let counts = waiting(&stored).zip(waiting(observed));
    counts.is_some_and(|(stored, observed)| stored.abs_diff(observed) <= stored / 10)
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_is_stored_again_when_it_has_changed_by_a_tenth() {
        let stored = |waiting: u64, level| Alert {
            topic: Topic::CallbackHost,
            subject: "7 crm.example".to_owned(),
            account: None,
            level,
            since: Timestamp::UNIX_EPOCH,
            told: Level::Bad,
            told_at: [None; 3],
            data: json!({ "waiting": waiting }).to_string(),
        };
        for (before, level, observed, is_kept) in [
            (1, Level::Bad, 1, true),
            (1, Level::Bad, 2, false),
            (100, Level::Bad, 110, true),
            (100, Level::Bad, 111, false),
            (100, Level::Bad, 89, false),
            (100, Level::Fine, 101, false),
        ] {
            let alert = stored(before, level);
            let data = data(
                std::slice::from_ref(&alert),
                "7 crm.example",
                &json!({ "waiting": observed, "host": "crm.example" }),
            );
            assert_eq!(data == alert.data, is_kept, "{before} {observed}");
        }
    }
}
