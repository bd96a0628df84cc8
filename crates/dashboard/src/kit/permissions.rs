//! Permissions in plain words.

use domain::Permission;

/// A permission that may be granted.
pub(crate) struct Offer {
    /// The name in the API.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) words: &'static str,
    pub(crate) costs: bool,
    pub(crate) is_ticked: bool,
}

impl Offer {
    pub(crate) fn new(scope: Permission, is_ticked: bool) -> Self {
        let (title, words, costs) = words(scope);
        Self {
            name: scope.name(),
            title,
            words,
            costs,
            is_ticked,
        }
    }
}

/// Whether using the permission costs money.
pub(crate) fn costs(scope: Permission) -> bool {
    words(scope).2
}

/// Title, explanation, and whether it costs money.
fn words(scope: Permission) -> (&'static str, &'static str, bool) {
    match scope {
        Permission::SmsSend => (
            "Send SMS",
            "Sends text messages for your account, sees what they would cost and whether they were delivered, reads what people answer to your numbers, and cancels scheduled ones. Each message is paid from the balance.",
            true,
        ),
        Permission::ViberSend => (
            "Send Viber messages",
            "Sends Viber messages for your account. Each message is paid from the balance.",
            true,
        ),
        Permission::HlrLookup => (
            "Look up numbers",
            "Asks networks whether a number can be reached, and where, and sees the answers. Each lookup is paid from the balance, whatever the answer.",
            true,
        ),
        Permission::SmsRates => (
            "Read prices",
            "Sees what a message costs, by country and operator.",
            false,
        ),
        Permission::SmsRead => (
            "Read messages",
            "Sees the list of messages, scheduled messages and the inbox with their texts, the state of messages, and what a message would cost.",
            false,
        ),
        Permission::SenderWrite => (
            "Register senders",
            "Registers and confirms names and numbers that your messages come from, and sees those of your account. A number is confirmed by a PIN that is sent to it.",
            false,
        ),
        Permission::NumbersRead => (
            "Read number data",
            "Sees operators, networks and prefixes, and corrects phone numbers.",
            false,
        ),
        Permission::VerifySend => (
            "Verify numbers",
            "Sends one-time codes by SMS, and checks what people enter. Each message is paid from the balance.",
            true,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scopes_of_clients_say_what_they_cover() {
        for (scope, parts) in [
            (
                Permission::SmsSend,
                &["Sends", "cost", "delivered", "answer", "cancels"][..],
            ),
            (Permission::SmsRates, &["what a message costs"][..]),
            (
                Permission::SenderWrite,
                &["Registers", "confirms", "sees"][..],
            ),
            (
                Permission::HlrLookup,
                &["Asks networks", "sees the answers"][..],
            ),
            (
                Permission::NumbersRead,
                &["operators", "prefixes", "corrects"][..],
            ),
        ] {
            let words = Offer::new(scope, false).words;
            assert!(
                parts.iter().all(|part| words.contains(part)),
                "{scope}: {words}"
            );
        }
    }

    #[test]
    fn permissions_that_cost_money_say_so() {
        for scope in Permission::ALL {
            let offer = Offer::new(scope, false);
            let says = offer.words.contains("paid from the balance");
            assert_eq!(says, offer.costs, "{scope}");
            assert!(offer.words.ends_with('.'), "{scope}");
        }
    }
}
