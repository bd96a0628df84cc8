//! `POST /sms`: a bad value is refused with the field, the rule and the value, and nothing is stored.

mod addresses;
mod content;
mod options;

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, message, sms, sms_with, tomorrow};

/// A name, the changed fields, and what the message must contain besides the name of the field.
type Case<'a> = (&'a str, Value, &'a [&'a str]);

/// Sends each case as a change to a valid scheduled message, which would be listed if it were stored.
fn assert_refused(field: &str, cases: &[Case<'_>]) {
    let service = Service::start(Backend::Sqlite);
    for (case, fields, fragments) in cases {
        let mut body = sms_with(&json!({ "scheduled": tomorrow() }));
        let fields = fields.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(fields);
        let response = service.send(&body);
        assert_eq!(response.status, 400, "{case}: {}", response.text());
        let text = message(&response);
        let start = format!("Invalid value for field '{field}': ");
        assert!(text.starts_with(&start), "{case}: {text}");
        for fragment in *fragments {
            assert!(
                text.contains(fragment),
                "{case}: no {fragment:?} in: {text}"
            );
        }
        assert!(text.len() < 400, "{case}: {text}");
    }
    assert_eq!(service.scheduled_as(&service.token), Vec::<Value>::new());
    assert_eq!(service.stored(), 0);
}

/// A missing field gets the same message as one that is null.
#[test]
fn missing_fields() {
    let service = Service::start(Backend::Sqlite);
    for field in ["to", "from", "message"] {
        let mut body = sms();
        body.as_object_mut().expect("an object").remove(field);
        let response = service.send(&body);
        assert_eq!(response.status, 400, "{field}");
        let expected = format!("Invalid value for field '{field}': it is missing; give ");
        assert!(
            message(&response).starts_with(&expected),
            "{field}: {}",
            response.text()
        );
    }
    assert_eq!(service.stored(), 0);
}
