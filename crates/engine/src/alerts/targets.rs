//! Where notifications go: entries of the configuration, and settings of accounts.

use std::fmt::{self, Write as _};

use domain::alert::Event;
use domain::person::Email;
use domain::ports::{NewNotification, NotifySetting};
use domain::{AccountId, CallbackUrl, TokenHash};

/// An address that notifications go to. Its debug form leaves out the address and the secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    Url {
        url: CallbackUrl,
        /// Signs the requests.
        secret: String,
    },
    Email(Email),
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url { .. } => "Url",
            Self::Email(_) => "Email",
        })
    }
}

/// An entry of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyTarget {
    pub address: Address,
    /// The events that it gets; all if empty.
    pub events: Vec<Event>,
}

/// `notification.target` of the URL of an account.
const URL: &str = "url";
/// `notification.target` of the e-mail address of an account.
const EMAIL: &str = "email";

impl NotifyTarget {
    /// The name in the database, the same as long as the address is the same. The address cannot be read from it.
    pub(crate) fn key(&self) -> String {
        let address = match &self.address {
            Address::Url { url, .. } => url.as_str(),
            Address::Email(email) => email.as_str(),
        };
        let hash = TokenHash::from_secret(address);
        let mut key = "config ".to_owned();
        for byte in hash.as_bytes().iter().take(8) {
            // Writing to a string does not fail.
            let _ = write!(key, "{byte:02x}");
        }
        key
    }

    fn wants(&self, event: Event) -> bool {
        self.events.is_empty() || self.events.contains(&event)
    }
}

/// The target of an account's notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnTarget {
    Url,
    Email,
}

impl OwnTarget {
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        match key.rsplit(' ').next()? {
            URL => Some(Self::Url),
            EMAIL => Some(Self::Email),
            _ => None,
        }
    }
}

/// The notifications about an event: to each entry that wants it, and to the account that it is about.
pub(crate) fn notifications(
    targets: &[NotifyTarget],
    own: Option<(AccountId, &NotifySetting)>,
    event: Event,
    body: &str,
) -> Vec<NewNotification> {
    let configured = targets.iter().filter(|target| target.wants(event));
    let configured = configured.map(|target| NewNotification {
        account: None,
        target: target.key(),
        body: body.to_owned(),
    });
    let own = own.filter(|_| event.is_for_accounts());
    let own = own.into_iter().flat_map(|(account, setting)| {
        let url = setting.url.as_ref().map(|_| URL);
        let email = setting.email.as_ref().map(|_| EMAIL);
        let kinds = url.into_iter().chain(email);
        kinds.map(move |kind| NewNotification {
            account: Some(account),
            target: format!("account {account} {kind}"),
            body: body.to_owned(),
        })
    });
    configured.chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CallbackUrl {
        CallbackUrl::parse(text).expect("a URL")
    }

    #[test]
    fn each_event_goes_to_those_that_want_it() {
        let target = |address: &str, events: &[Event]| NotifyTarget {
            address: Address::Url {
                url: url(address),
                secret: "whsec_c2VjcmV0".to_owned(),
            },
            events: events.to_vec(),
        };
        let targets = [
            target("https://all.example/", &[]),
            target("https://some.example/", &[Event::CarrierDown]),
        ];
        let setting = NotifySetting {
            url: Some(url("https://own.example/")),
            email: Some("ann@own.example".parse().expect("an address")),
        };
        let account = AccountId::new(7).expect("an ID");
        for (case, event, own, expected) in [
            ("both entries", Event::CarrierDown, false, 2),
            ("the entry for all", Event::DiskLow, false, 1),
            ("the account, too", Event::BalanceLow, true, 3),
            ("not the account", Event::SenderPending, true, 1),
        ] {
            let own = own.then_some((account, &setting));
            let made = notifications(&targets, own, event, "{}");
            assert_eq!(made.len(), expected, "{case}");
            let text = format!("{made:?}{targets:?}");
            assert!(!text.contains("example"), "no address in {text}");
        }
        let made = notifications(&[], Some((account, &setting)), Event::BalanceLow, "{}");
        let kinds: Vec<_> = made
            .iter()
            .map(|one| OwnTarget::from_key(&one.target))
            .collect();
        assert_eq!(kinds, [Some(OwnTarget::Url), Some(OwnTarget::Email)]);
    }
}
