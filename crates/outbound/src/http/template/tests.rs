use proptest::prelude::*;
use serde_json::json;

use super::super::samples::{message, secrets, values, viber};
use super::super::values::{MessageValues, Subject};
use super::*;

fn parse(text: &str) -> Template {
    Template::parse(text, &secrets()).expect(text)
}

fn parse_json(template: &Value) -> Result<JsonTemplate, JsonTemplateError> {
    let vocabulary = Vocabulary {
        scope: Scope::Message,
        secrets: &secrets(),
    };
    JsonTemplate::parse(template, vocabulary)
}

#[test]
fn variables_are_filled_in() {
    let message = message("Hello & bye");
    for (template, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("{{ to }}", "+37120000001"),
        ("{{to_digits}}", "37120000001"),
        ("{{ from }}", "Acme"),
        ("<{{ text }}>", "<Hello & bye>"),
        ("{{ id }}/{{ parts }}/{{ coding }}", "7/1/0"),
        ("in {{ expires_in }} s", "in 600 s"),
        ("{{ report_url }}", "https://sms.example/r?a=b"),
        ("Bearer {{ secret.key }}", "Bearer hunter2"),
        ("a{{ udh }}b", "ab"),
        ("} } { {", "} } { {"),
    ] {
        let text = parse(template).text(&values(&message));
        assert_eq!(text.as_deref(), Some(expected), "{template}");
    }
}

#[test]
fn what_the_message_does_not_have_is_left_out() {
    let message = message("Hello");
    for variable in ["udh", "image_url", "button_title", "button_url"] {
        let template = format!("{{{{ {variable} }}}}");
        assert_eq!(parse(&template).text(&values(&message)), None, "{variable}");
    }
    let template =
        json!({ "image": "{{ image_url }}", "to": ["{{ to }}", "{{ udh }}"], "x": null });
    let template = parse_json(&template).expect("a template");
    let filled = template.fill(&values(&message));
    assert_eq!(filled, Some(json!({ "to": ["+37120000001"], "x": null })));
    let viber = viber();
    let filled = template.fill(&values(&viber)).expect("a value");
    assert_eq!(filled["image"], "https://a.example/b.png");
}

#[test]
fn a_single_variable_keeps_its_type() {
    let message = message("1");
    for (template, expected) in [
        (json!("{{ parts }}"), json!(1)),
        (json!("{{ expires_in }}"), json!(600)),
        (json!(" {{ parts }}"), json!(" 1")),
        (json!("{{ id }}"), json!("7")),
        (json!("{{ text }}"), json!("1")),
        (json!(true), json!(true)),
        (json!([{ "a": 1.5 }]), json!([{ "a": 1.5 }])),
    ] {
        let parsed = parse_json(&template).expect("a template");
        assert_eq!(parsed.fill(&values(&message)), Some(expected), "{template}");
    }
}

#[test]
fn mistakes_say_where_and_what() {
    let variables = "there are to, to_digits, from, text, id, parts, coding, udh, expires_in, report_url, image_url, \
                     button_title, button_url, timestamp, timestamp_ms, and secret.NAME for each key of secret";
    for (template, path, expected) in [
        (
            json!("{{ tex }}"),
            "",
            format!("'{{{{ tex }}}}' is not a variable here; {variables}"),
        ),
        (
            json!({ "a": [{ "b": "{{ }}" }] }),
            "a.1.b",
            format!("'{{{{  }}}}' is not a variable here; {variables}"),
        ),
        (json!(["", "{{ to"]), "2", "a '{{' has no '}}'".to_owned()),
        (
            json!({ "a": "{{ secret.pin }}" }),
            "a",
            "'{{ secret.pin }}' is not set; add pin to secret".to_owned(),
        ),
    ] {
        let error = parse_json(&template).expect_err("a mistake");
        assert_eq!(error.path, path, "{template}");
        assert_eq!(error.error.to_string(), expected, "{template}");
    }
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let error = parse_json(&deep).expect_err("too deep");
    assert_eq!(error.error, TemplateError::TooDeep);
}

#[test]
fn each_place_has_its_variables() {
    let secrets = secrets();
    let parse = |scope, text: &str| {
        let vocabulary = Vocabulary {
            scope,
            secrets: &secrets,
        };
        Template::parse_in(text, vocabulary)
    };
    let at = super::super::samples::now();
    let signed = Values {
        subject: Subject::Signed {
            method: "POST",
            path: "/send?a=1",
            body: "{}",
        },
        at,
    };
    let template = parse(
        Scope::Signed,
        "{{ method }} {{ path }} {{ timestamp }} {{ timestamp_ms }} {{ body }}",
    );
    let text = template.expect("a template").text(&signed);
    let expected = "POST /send?a=1 1731672000 1731672000000 {}";
    assert_eq!(text.as_deref(), Some(expected));
    let poll = Values {
        subject: Subject::Poll {
            id: domain::MessageId::new(7).expect("in range"),
            provider_id: "a/b",
        },
        at,
    };
    let template = parse(Scope::Poll, "/{{ id }}/{{ provider_id }}").expect("a template");
    assert_eq!(template.url(&poll), "/7/a%2Fb");
    for (scope, text) in [
        (Scope::Message, "{{ provider_id }}"),
        (Scope::Message, "{{ items }}"),
        (Scope::Poll, "{{ to }}"),
        (Scope::Signed, "{{ text }}"),
        (Scope::Signature, "{{ body }}"),
    ] {
        let error = parse(scope, text).expect_err(text);
        assert!(matches!(error, TemplateError::Unknown { .. }), "{text}");
    }
}

#[test]
fn a_list_is_one_in_json_and_comma_separated_elsewhere() {
    let message = message("Hello");
    let items = [json!("+1"), json!("+2")];
    let Subject::Message(own) = values(&message).subject else {
        unreachable!("a message")
    };
    let batch = Values {
        subject: Subject::Message(MessageValues {
            items: &items,
            ..own
        }),
        ..values(&message)
    };
    let secrets = secrets();
    let vocabulary = Vocabulary {
        scope: Scope::Batch,
        secrets: &secrets,
    };
    let template = Template::parse_in("{{ items }}", vocabulary).expect("a template");
    assert_eq!(template.json(&batch), Some(json!(["+1", "+2"])));
    assert_eq!(template.text(&batch).as_deref(), Some("+1,+2"));
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", parse("Bearer {{ secret.key }} {{ to }}"));
    assert_eq!(shown, "Bearer (hidden) {{ To }}");
}

#[test]
fn a_text_is_encoded_for_its_place() {
    for (text, header, url) in [
        ("Hello", "Hello", "Hello"),
        (
            "a b&c=d/e?f#g",
            "a b&c=d/e?f#g",
            "a%20b%26c%3Dd%2Fe%3Ff%23g",
        ),
        ("\r\nX: y", "%0D%0AX: y", "%0D%0AX%3A%20y"),
        ("100%", "100%", "100%25"),
        ("ž", "%C5%BE", "%C5%BE"),
        ("../..", "../..", "..%2F.."),
        ("{{ to }}", "{{ to }}", "%7B%7B%20to%20%7D%7D"),
    ] {
        let message = message(text);
        let template = parse("<{{ text }}>");
        assert_eq!(template.header(&values(&message)), format!("<{header}>"));
        assert_eq!(template.url(&values(&message)), format!("<{url}>"));
    }
}

proptest! {
    #[test]
    fn no_text_breaks_out_of_its_place(text in any::<String>()) {
        let message = message(&text);
        let json = parse_json(&json!({ "a": "{{ text }}", "b": 1 }));
        let json = json.expect("a template").fill(&values(&message)).expect("a value");
        prop_assert_eq!(&json, &json!({ "a": text.clone(), "b": 1 }));
        let header = parse("{{ text }}").header(&values(&message));
        prop_assert!(http::HeaderValue::from_str(&header).is_ok());
        let url = format!("https://a.example/x/{}?b=1", parse("{{ text }}").url(&values(&message)));
        let url = url::Url::parse(&url).expect("a URL");
        prop_assert_eq!(url.host_str(), Some("a.example"));
        prop_assert_eq!(url.query(), Some("b=1"));
        prop_assert!(url.fragment().is_none());
    }

    #[test]
    fn parsing_any_text_never_panics(text in "(\\{\\{|\\}\\}| |to|secret\\.key|é){0,8}") {
        drop(Template::parse(&text, &secrets()));
    }
}
