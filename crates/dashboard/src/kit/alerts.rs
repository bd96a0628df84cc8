//! What is wrong at present, at the top of every page.

use domain::alert::{Alert, Topic};
use domain::person::{Role, SignedIn};
use engine::alerts::words::{advice, sentence};
use serde_json::Value;
use url::form_urlencoded;

use crate::kit::format::TimedText;
use crate::kit::page::AlertLine;

/// Further alerts are only counted.
const MAX_LINES: usize = 5;
const HOSTS: &str = "/dashboard/operator/hosts";

/// The alerts of a person: operators see those of the service, everybody those of their account.
pub(crate) fn lines(signed_in: &SignedIn, alerts: &[Alert]) -> Vec<AlertLine> {
    let is_operator = signed_in.role() == Role::Operator;
    let account = signed_in.account();
    let is_own = |alert: &Alert| alert.account.is_some() && alert.account == account;
    let is_shown = |alert: &&Alert| {
        // An account that never had money is no news for operators.
        let was_told = alert.told_at.iter().any(Option::is_some);
        is_own(alert) || (is_operator && was_told)
    };
    let shown: Vec<&Alert> = alerts.iter().filter(is_shown).collect();
    let mut lines: Vec<AlertLine> = shown
        .iter()
        .take(MAX_LINES)
        .map(|alert| AlertLine {
            text: TimedText::new(&sentence(alert)),
            advice: advice(alert.topic, alert.level),
            path: page(alert, is_operator && !is_own(alert), is_operator),
        })
        .collect();
    if shown.len() > MAX_LINES {
        lines.push(AlertLine {
            text: TimedText::new(&format!("And {} more", shown.len() - MAX_LINES)),
            advice: "",
            path: if is_operator {
                HOSTS.to_owned()
            } else {
                "/dashboard/callbacks".to_owned()
            },
        });
    }
    lines
}

/// The page where something can be done about an alert. Operators are led to the account of others.
fn page(alert: &Alert, is_of_others: bool, is_operator: bool) -> String {
    let page = match alert.topic {
        Topic::Carrier => "/dashboard/operator/carriers",
        Topic::Balance if is_of_others => return account_page(alert),
        Topic::Balance => "/dashboard",
        Topic::CallbackHost if is_operator => HOSTS,
        Topic::CallbackHost => "/dashboard/callbacks",
        Topic::Verify if is_of_others => "/dashboard/operator/verify",
        Topic::Verify => "/dashboard/verify",
        Topic::DeliveryRate if is_of_others => return failed_messages(alert),
        Topic::DeliveryRate => "/dashboard/messages?state=failed",
        Topic::Sender => "/dashboard/operator/senders",
        Topic::Node | Topic::Disk | Topic::Certificate => "/dashboard/operator/nodes",
    };
    page.to_owned()
}

fn account_page(alert: &Alert) -> String {
    const ACCOUNTS: &str = "/dashboard/operator/accounts";
    match alert.account {
        Some(account) => format!("{ACCOUNTS}/{account}"),
        None => ACCOUNTS.to_owned(),
    }
}

/// The failed messages of the account of an alert, or of all accounts.
fn failed_messages(alert: &Alert) -> String {
    let data: Value = serde_json::from_str(&alert.data).unwrap_or_default();
    let mut fields = form_urlencoded::Serializer::new(String::new());
    if let Some(name) = data["account"].as_str() {
        fields.append_pair("account", name);
    }
    let query = fields.append_pair("state", "failed").finish();
    format!("/dashboard/operator/messages?{query}")
}

#[cfg(test)]
mod tests {
    use domain::alert::Level;
    use domain::ids::PersonId;
    use domain::{AccountId, Person, Timestamp};

    use super::*;

    fn person(role: Role, account: u64) -> SignedIn {
        SignedIn::Person(Person {
            id: PersonId::new(1).expect("in range"),
            email: "ann@example.com".parse().expect("an address"),
            role,
            account: AccountId::new(account),
        })
    }

    fn alert(topic: Topic, account: Option<u64>, was_told: bool) -> Alert {
        Alert {
            topic,
            subject: "x".to_owned(),
            account: account.and_then(AccountId::new),
            level: Level::Bad,
            since: Timestamp::UNIX_EPOCH,
            told: Level::Bad,
            told_at: [None, was_told.then_some(Timestamp::UNIX_EPOCH), None],
            data: r#"{"carrier":"alpha","host":"crm.example","account":"acme","balance":"1.00"}"#
                .to_owned(),
        }
    }

    fn text(line: &AlertLine) -> String {
        line.text.0.iter().map(|part| part.text.as_str()).collect()
    }

    #[test]
    fn everybody_sees_their_own_alerts_and_operators_those_of_the_service() {
        let alerts = [
            alert(Topic::Carrier, None, true),
            alert(Topic::CallbackHost, Some(1), true),
            alert(Topic::Balance, Some(2), false),
        ];
        let texts = |signed_in: &SignedIn| {
            let lines = lines(signed_in, &alerts);
            lines
                .into_iter()
                .map(|line| (text(&line), line.path))
                .collect::<Vec<_>>()
        };
        let hosts = "crm.example does not accept callbacks".to_owned();
        let balance = "The balance of acme is low: 1.00".to_owned();
        assert_eq!(
            texts(&person(Role::Member, 1)),
            [(hosts.clone(), "/dashboard/callbacks".to_owned())]
        );
        assert_eq!(
            texts(&person(Role::Admin, 2)),
            [(balance, "/dashboard".to_owned())]
        );
        assert_eq!(
            texts(&person(Role::Operator, 9)),
            [
                (
                    "Carrier alpha is down".to_owned(),
                    "/dashboard/operator/carriers".to_owned()
                ),
                (hosts, HOSTS.to_owned())
            ]
        );
    }

    #[test]
    fn operators_are_led_to_the_account_of_an_alert() {
        let path = |topic, account| {
            let alert = alert(topic, account, true);
            let lines = lines(&person(Role::Operator, 9), &[alert]);
            lines.into_iter().map(|line| line.path).collect::<String>()
        };
        for (topic, account, expected) in [
            (Topic::Balance, 2, "/dashboard/operator/accounts/2"),
            (Topic::Balance, 9, "/dashboard"),
            (
                Topic::DeliveryRate,
                2,
                "/dashboard/operator/messages?account=acme&state=failed",
            ),
            (Topic::DeliveryRate, 9, "/dashboard/messages?state=failed"),
        ] {
            assert_eq!(path(topic, Some(account)), expected);
        }
    }

    #[test]
    fn many_alerts_are_counted() {
        let alerts: Vec<Alert> = (0..20).map(|_| alert(Topic::Carrier, None, true)).collect();
        let lines = lines(&person(Role::Operator, 1), &alerts);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(text(&lines[MAX_LINES]), "And 15 more");
    }
}
