//! A message that is being written.

use std::borrow::Cow;

use domain::access::token::TokenHash;
use engine::sending::submit::{ActionInput, IdempotentRequest, SmsInput, To, ViberInput};

use crate::kit::browser::{hex, random_key};
use crate::kit::form::Form;
use crate::kit::query::Query;

/// The fields, by their names in the REST API, which errors refer to.
pub(crate) const FIELDS: [&str; 9] = [
    "from",
    "to",
    "message",
    "scheduled",
    "dlrUrl",
    "testMode",
    IMAGE,
    BUTTON_TITLE,
    BUTTON_URL,
];
pub(crate) const IMAGE: &str = "im.image.url";
const BUTTON_TITLE: &str = "im.action.title";
const BUTTON_URL: &str = "im.action.url";
/// A number that is reserved for tests; the simulator delivers to it.
const SIMULATED_TO: &str = "+447700900000";
const SIMULATED_FROM: &str = "Switchboard";
const SIMULATED_TEXT: &str = "Hello from Switchboard!";
/// Browsers send times without seconds.
const MINUTES_LEN: usize = "2030-01-31T09:30".len();
const SECONDS_LEN: usize = "2030-01-31T09:30:00".len();

#[derive(Clone, Default)]
pub(crate) struct Draft {
    /// Whether it is a Viber message instead of an SMS.
    pub(crate) is_viber: bool,
    /// Image and button of a Viber message.
    pub(crate) image: String,
    pub(crate) button_title: String,
    pub(crate) button_url: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) message: String,
    /// A time in UTC, without an offset.
    pub(crate) scheduled: String,
    pub(crate) dlr_url: String,
    pub(crate) test_mode: String,
    /// Idempotency key of the page, so that a double click sends once.
    pub(crate) once: String,
}

impl Draft {
    /// Fills the form from the query string, or with an example for the simulator.
    pub(crate) fn begin(query: &Query, sender: Option<&String>, is_simulated: bool) -> Self {
        let or = |name: &str, simulated: &str| {
            let given = query.get(name).map(str::to_owned);
            let simulated = || is_simulated.then(|| simulated.to_owned());
            given.or_else(simulated).unwrap_or_default()
        };
        let from = match (query.get("from"), sender) {
            (None, Some(sender)) => sender.clone(),
            _ => or("from", SIMULATED_FROM),
        };
        Self {
            from,
            to: or("to", SIMULATED_TO),
            message: or("message", SIMULATED_TEXT),
            dlr_url: query.text("dlrUrl").to_owned(),
            once: random_key(),
            ..Self::default()
        }
    }

    /// An empty reply from a number to a handset.
    pub(crate) fn reply(from: String, to: String) -> Self {
        Self {
            from,
            to,
            once: random_key(),
            ..Self::default()
        }
    }

    pub(crate) fn read(mut form: Form) -> Self {
        let mut take = |name| form.take(name).trim().to_owned();
        Self {
            from: take("from"),
            to: take("to"),
            scheduled: take("scheduled"),
            dlr_url: take("dlrUrl"),
            test_mode: take("testMode"),
            once: take("once"),
            is_viber: take("channel") == "viber",
            image: take(IMAGE),
            button_title: take(BUTTON_TITLE),
            button_url: take(BUTTON_URL),
            // Browsers send a line break as two characters.
            message: form.take("message").replace("\r\n", "\n"),
        }
    }

    /// Replaces a field by a valid value, to check the others.
    pub(crate) fn make_valid(&mut self, field: &str) {
        let (field, valid) = match field {
            "from" => (&mut self.from, SIMULATED_FROM),
            "to" => (&mut self.to, SIMULATED_TO),
            "message" => (&mut self.message, SIMULATED_TEXT),
            "scheduled" => (&mut self.scheduled, ""),
            "dlrUrl" => (&mut self.dlr_url, ""),
            "testMode" => (&mut self.test_mode, ""),
            IMAGE => (&mut self.image, ""),
            BUTTON_TITLE | BUTTON_URL => {
                self.button_title.clear();
                (&mut self.button_url, "")
            }
            _ => return,
        };
        valid.clone_into(field);
    }

    /// A message in test mode whose delivery report goes to this address. It is free of charge.
    pub(crate) fn test_report(from: Option<String>, dlr_url: &str) -> Self {
        Self {
            from: from.unwrap_or_else(|| SIMULATED_FROM.to_owned()),
            to: SIMULATED_TO.to_owned(),
            message: "A test of delivery reports".to_owned(),
            dlr_url: dlr_url.to_owned(),
            test_mode: "1".to_owned(),
            once: random_key(),
            ..Self::default()
        }
    }

    /// Whether an optional field is filled in.
    pub(crate) fn has_more(&self) -> bool {
        [&self.scheduled, &self.dlr_url, &self.test_mode]
            .into_iter()
            .any(|field| !field.is_empty())
    }

    /// Whether an image or a button is given.
    pub(crate) fn is_interactive(&self) -> bool {
        [&self.image, &self.button_title, &self.button_url]
            .into_iter()
            .any(|field| !field.is_empty())
    }

    /// Whether sender and recipient are filled in, so that there is a price.
    pub(crate) fn is_addressed(&self) -> bool {
        !self.from.is_empty() && !self.to.is_empty()
    }

    fn recipients(&self) -> Vec<Cow<'_, str>> {
        let numbers = self.to.split([',', ';', '\n', '\r']).map(str::trim);
        let numbers = numbers.filter(|number| !number.is_empty());
        numbers.map(Cow::Borrowed).collect()
    }

    pub(crate) fn order(&self) -> SmsInput<'_> {
        let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned().into());
        SmsInput {
            to: To::List(self.recipients()),
            from: Cow::Borrowed(&self.from),
            message: Cow::Borrowed(&self.message),
            dlr_url: given(&self.dlr_url),
            priority: None,
            scheduled: given(&self.scheduled_utc()),
            udh: None,
            coding: None,
            test_mode: given(&self.test_mode),
            expire_in: None,
            correct_by: None,
        }
    }

    pub(crate) fn viber_order(&self) -> ViberInput<'_> {
        let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned().into());
        let (title, url) = (given(&self.button_title), given(&self.button_url));
        let has_button = title.is_some() || url.is_some();
        ViberInput {
            to: To::List(self.recipients()),
            from: Cow::Borrowed(&self.from),
            message: Cow::Borrowed(&self.message),
            dlr_url: given(&self.dlr_url),
            priority: None,
            scheduled: given(&self.scheduled_utc()),
            test_mode: given(&self.test_mode),
            correct_by: None,
            action: has_button.then_some(ActionInput { url, title }),
            image: given(&self.image),
        }
    }

    fn scheduled_utc(&self) -> String {
        match self.scheduled.len() {
            MINUTES_LEN => format!("{}:00Z", self.scheduled),
            SECONDS_LEN => format!("{}Z", self.scheduled),
            _ => self.scheduled.clone(),
        }
    }

    /// The same page with the same content is sent once; with other content it is another message.
    pub(crate) fn once_only(&self) -> IdempotentRequest {
        let all = [
            self.once.as_str(),
            &self.from,
            &self.to,
            &self.message,
            &self.scheduled,
            &self.dlr_url,
            &self.test_mode,
            if self.is_viber { "viber" } else { "sms" },
            &self.image,
            &self.button_title,
            &self.button_url,
        ];
        // With the lengths, no two different drafts give the same text.
        let all = all
            .map(|field| format!("{} {field}\n", field.len()))
            .concat();
        let key = hex(TokenHash::from_secret(&all).as_bytes());
        IdempotentRequest::new(key.as_bytes(), all.as_bytes()).expect("hex digits are visible")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            from: "Acme".to_owned(),
            to: "+371 2000 0001, +37120000002;\r\n\n +37120000003 ,".to_owned(),
            message: "Hello".to_owned(),
            once: "1".to_owned(),
            ..Draft::default()
        }
    }

    #[test]
    fn recipients_may_be_separated_in_several_ways() {
        let expected = ["+371 2000 0001", "+37120000002", "+37120000003"];
        assert_eq!(draft().recipients(), expected);
    }

    #[test]
    fn times_are_utc() {
        for (typed, read) in [
            ("2030-01-31T09:30", "2030-01-31T09:30:00Z"),
            ("2030-01-31T09:30:15", "2030-01-31T09:30:15Z"),
            ("soon", "soon"),
            ("", ""),
        ] {
            let draft = Draft {
                scheduled: typed.to_owned(),
                ..draft()
            };
            assert_eq!(draft.scheduled_utc(), read, "{typed}");
        }
    }

    #[test]
    fn another_page_or_another_content_is_another_message() {
        let shown = |draft: &Draft| format!("{:?}", draft.once_only());
        assert_eq!(shown(&draft()), shown(&draft()));
        let other_page = Draft {
            once: "2".to_owned(),
            ..draft()
        };
        let other_text = Draft {
            message: "Hello!".to_owned(),
            ..draft()
        };
        assert_ne!(shown(&draft()), shown(&other_page));
        let other_channel = Draft {
            is_viber: true,
            ..draft()
        };
        assert_ne!(shown(&draft()), shown(&other_text));
        assert_ne!(shown(&draft()), shown(&other_channel));
    }
}
