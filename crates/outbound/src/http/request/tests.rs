use http_body_util::BodyExt as _;
use serde_json::json;

use super::super::samples::{message, now, secrets, values, viber};
use super::super::signature::{HmacEncoding, HmacHash};
use super::super::values::{MessageValues, Subject};
use super::*;

fn description() -> RequestDescription {
    RequestDescription {
        method: "POST".to_owned(),
        url: "https://provider.example/send".to_owned(),
        ..RequestDescription::default()
    }
}

fn parse(description: &RequestDescription) -> Result<RequestRules, RuleError> {
    RequestRules::parse(description, None, &secrets())
}

fn build(description: &RequestDescription, queued: &QueuedMessage) -> Request<Full<Bytes>> {
    let rules = parse(description).expect("a request");
    rules.build(&values(queued)).expect("a request")
}

async fn body(request: Request<Full<Bytes>>) -> String {
    let body = request.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

fn pair(name: &str, value: Value) -> (String, Value) {
    (name.to_owned(), value)
}

#[tokio::test]
async fn a_json_request_is_built() {
    let request = RequestDescription {
        headers: vec![(
            "Authorization".to_owned(),
            "Bearer {{ secret.key }}".to_owned(),
        )],
        json: Some(
            json!({ "to": ["{{ to }}"], "text": "{{ text }}", "parts": "{{ parts }}", "udh": "{{ udh }}" }),
        ),
        ..description()
    };
    let request = build(&request, &message("\"}{{ to }}\n"));
    assert_eq!(request.method(), "POST");
    assert_eq!(request.uri(), "https://provider.example/send");
    assert_eq!(request.headers()["authorization"], "Bearer hunter2");
    assert!(request.headers()["authorization"].is_sensitive());
    assert_eq!(request.headers()["content-type"], "application/json");
    let body: Value = serde_json::from_str(&body(request).await).expect("JSON");
    let expected = json!({ "to": ["+37120000001"], "text": "\"}{{ to }}\n", "parts": 1 });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_form_and_a_query_are_encoded() {
    let request = RequestDescription {
        url: "https://provider.example/{{ secret.key }}/{{ from }}?a=1".to_owned(),
        query: vec![pair("n", json!(3)), pair("image", json!("{{ image_url }}"))],
        form: Some(vec![
            pair("Body", json!("{{ text }}")),
            pair("flash", json!(true)),
        ]),
        basic: Some(("me".to_owned(), "{{ secret.key }}".to_owned())),
        ..description()
    };
    let request = build(&request, &message("a&To=b c=ž"));
    assert_eq!(
        request.uri(),
        "https://provider.example/hunter2/Acme?a=1&n=3"
    );
    assert_eq!(request.headers()["authorization"], "Basic bWU6aHVudGVyMg==");
    assert_eq!(
        request.headers()["content-type"],
        "application/x-www-form-urlencoded"
    );
    assert_eq!(body(request).await, "Body=a%26To%3Db+c%3D%C5%BE&flash=true");
}

#[tokio::test]
async fn a_query_is_enough() {
    let request = RequestDescription {
        method: "GET".to_owned(),
        query: vec![pair("msisdn", json!("{{ to_digits }}"))],
        ..description()
    };
    let request = build(&request, &message("Hi"));
    assert_eq!(
        request.uri(),
        "https://provider.example/send?msisdn=37120000001"
    );
    assert!(!request.headers().contains_key("content-type"));
    assert_eq!(body(request).await, "");
}

#[test]
fn a_path_follows_the_base_url() {
    let base: Url = "https://other.example/api/".parse().expect("a URL");
    let request = RequestDescription {
        url: "/v1/{{ to_digits }}".to_owned(),
        ..description()
    };
    let rules = RequestRules::parse(&request, Some(&base), &secrets()).expect("a request");
    let uri = rules.uri(&values(&message("Hi"))).expect("a URL");
    assert_eq!(uri, "https://other.example/api/v1/37120000001");
    assert!(parse(&request).is_err(), "without a base");
}

#[test]
fn mistakes_name_their_key() {
    let with_url = |url: &str| RequestDescription {
        url: url.to_owned(),
        ..description()
    };
    let with_header = |name: &str| RequestDescription {
        headers: vec![(name.to_owned(), "x".to_owned())],
        basic: Some(("me".to_owned(), "x".to_owned())),
        ..description()
    };
    let form = Some(vec![pair("a", json!([]))]);
    for (description, expected) in [
        (
            RequestDescription {
                method: "SEND".to_owned(),
                ..description()
            },
            "request.method: 'SEND' must be GET, POST, PUT or PATCH",
        ),
        (
            RequestDescription {
                method: "GET".to_owned(),
                json: Some(json!({})),
                ..description()
            },
            "request.method: is GET, which has no body",
        ),
        (
            RequestDescription {
                json: Some(json!({})),
                form: form.clone(),
                ..description()
            },
            "request.json: is set, and so is request.form",
        ),
        (
            RequestDescription {
                form,
                ..description()
            },
            "request.form.a: must be a text",
        ),
        (
            RequestDescription {
                json: Some(json!({ "a": { "b": "{{ x }}" } })),
                ..description()
            },
            "request.json.a.b: '{{ x }}' is not a variable",
        ),
        (
            RequestDescription {
                query: vec![pair("q", json!("{{ x }}"))],
                ..description()
            },
            "request.query.q: '{{ x }}' is not a variable",
        ),
        (with_url("ftp://x/"), "request.url: must begin with http://"),
        (with_url("/send"), "request.url: must begin with http://"),
        (
            with_url("https://{{ to }}/"),
            "request.url: must begin with http://",
        ),
        (
            with_url("https://a.{{ to }}/"),
            "request.url: must begin with http://",
        ),
        (
            with_url("https://me:x@a.example/"),
            "request.url: must hold no user",
        ),
        (
            with_url("https://a.example/#x"),
            "request.url: must hold no fragment",
        ),
        (
            with_url("https://a.example/a b"),
            "request.url: holds a character",
        ),
        (
            with_url("https://a.example/{{ to }}/<"),
            "request.url: holds a character",
        ),
        (
            with_header("a b"),
            "request.headers.a b: 'a b' is not a header name",
        ),
        (with_header("Host"), "request.headers.Host: cannot be set"),
        (
            with_header("Authorization"),
            "request.headers.Authorization: is set, and so is",
        ),
    ] {
        let error = parse(&description).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_message_that_would_lose_something_is_not_carried() {
    let texts_only = parse(&RequestDescription {
        json: Some(json!({ "text": "{{ text }}" })),
        ..description()
    });
    let texts_only = texts_only.expect("a request");
    let everything = parse(&RequestDescription {
        json: Some(json!({
            "udh": "{{ udh }}", "coding": "{{ coding }}", "image": "{{ image_url }}", "button": "{{ button_url }}",
            "report": "{{ report_url }}",
        })),
        ..description()
    });
    let everything = everything.expect("a request");
    assert!(everything.has_report_url() && !texts_only.has_report_url());
    let mut with_header = message("Hello");
    with_header.udh = "%05%00%03%01%02%01".parse().ok();
    let mut binary = message("Hello");
    binary.shape.coding = Coding::Binary;
    for (name, queued, is_carried) in [
        ("a text", message("Hello"), true),
        ("a header", with_header, false),
        ("binary", binary, false),
        ("a button and an image", viber(), false),
    ] {
        assert_eq!(texts_only.can_carry(&queued), is_carried, "{name}");
        assert!(everything.can_carry(&queued), "{name}");
    }
}

fn hmac(signed: &str, header: &str, value: &str) -> SigningDescription {
    SigningDescription {
        key: "{{ secret.key }}".to_owned(),
        hash: HmacHash::Sha256,
        encoding: HmacEncoding::Hex,
        signed: signed.to_owned(),
        header: header.to_owned(),
        value: value.to_owned(),
    }
}

#[test]
fn a_request_is_signed() {
    let signed = "{{ method }}\n{{ path }}\n{{ timestamp }}\n{{ body }}";
    let base64 = SigningDescription {
        hash: HmacHash::Sha512,
        encoding: HmacEncoding::Base64,
        ..hmac("{{ body }}", "X-Signature", "{{ signature }}")
    };
    for (hmac, header, expected) in [
        (
            hmac(signed, "Authorization", "HMAC me:{{ signature }}"),
            "authorization",
            "HMAC me:a1d8faa9d4ae651ba68b232070d5843f6b3923a5789bedc9839982c4c877dd50",
        ),
        (
            base64,
            "x-signature",
            "UiKa67pLW7xHZPrgzhyd4ZAr+CejUsAwF+grKRskhjQsaUf4xFt2v2lYxKO1nvr0A1bHzEgNkJWAZbPIYmVuyA==",
        ),
    ] {
        let request = RequestDescription {
            headers: vec![("X-Timestamp".to_owned(), "{{ timestamp }}".to_owned())],
            query: vec![pair("a", json!(1))],
            json: Some(json!({ "text": "{{ text }}" })),
            hmac: Some(hmac),
            ..description()
        };
        let request = build(&request, &message("Hi"));
        assert_eq!(request.headers()["x-timestamp"], "1731672000");
        assert_eq!(request.headers()[header], expected);
        assert!(request.headers()[header].is_sensitive());
    }
}

#[test]
fn mistakes_in_the_signature_name_their_key() {
    for (hmac, expected) in [
        (
            SigningDescription {
                key: "{{ text }}".to_owned(),
                ..hmac("{{ body }}", "X-Signature", "{{ signature }}")
            },
            "request.hmac.key: must be a secret",
        ),
        (
            hmac("{{ text }}", "X-Signature", "{{ signature }}"),
            "request.hmac.signed: '{{ text }}' is not a variable here; there are method, path, body, timestamp",
        ),
        (
            hmac("{{ body }}", "Host", "{{ signature }}"),
            "request.hmac.header: cannot be set",
        ),
        (
            hmac("{{ body }}", "X-Signature", "{{ body }}"),
            "request.hmac.value: '{{ body }}' is not a variable here; there are signature, timestamp",
        ),
    ] {
        let request = RequestDescription {
            hmac: Some(hmac),
            ..description()
        };
        let error = parse(&request).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_poll_names_the_message_as_the_provider_does() {
    let request = RequestDescription {
        method: "GET".to_owned(),
        url: "https://provider.example/messages/{{ provider_id }}".to_owned(),
        query: vec![
            pair("ref", json!("{{ id }}")),
            pair("key", json!("{{ secret.key }}")),
        ],
        ..RequestDescription::default()
    };
    let rules = RequestRules::parse_poll(&request, None, &secrets()).expect("a request");
    assert!(rules.has_provider_id());
    let values = Values {
        subject: Subject::Poll {
            id: domain::MessageId::new(7).expect("in range"),
            provider_id: "a/1",
        },
        at: now(),
    };
    let built = rules.build(&values).expect("a request");
    let expected = "https://provider.example/messages/a%2F1?ref=7&key=hunter2";
    assert_eq!(built.uri(), expected);
    let wrong = RequestDescription {
        query: vec![pair("to", json!("{{ to }}"))],
        ..request
    };
    let error = RequestRules::parse_poll(&wrong, None, &secrets()).expect_err("no such variable");
    let expected = "poll.request.query.to: '{{ to }}' is not a variable here; there are id, provider_id, timestamp";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_request_for_several_messages_has_an_item_for_each() {
    let request = RequestDescription {
        json: Some(json!({ "text": "{{ text }}", "to": "{{ items }}", "at": "{{ timestamp }}" })),
        item: Some(json!("{{ to }}")),
        ..description()
    };
    let rules = parse(&request).expect("a request");
    let (hello, bye) = (message("Hello"), message("Bye"));
    assert_eq!(rules.item(&values(&hello)), Some(json!("+37120000001")));
    let outline = |queued: &QueuedMessage| rules.outline(&values(queued)).expect("an outline");
    assert_eq!(outline(&hello), outline(&message("Hello")));
    assert_ne!(outline(&hello), outline(&bye), "another text");
    let items = [json!("+1"), json!("+2")];
    let own = values(&hello);
    let Subject::Message(message) = own.subject else {
        unreachable!("a message")
    };
    let subject = Subject::Message(MessageValues {
        items: &items,
        ..message
    });
    let built = rules.build(&Values { subject, ..own }).expect("a request");
    let body: Value = serde_json::from_str(&body(built).await).expect("JSON");
    let expected = json!({ "text": "Hello", "to": ["+1", "+2"], "at": 1_731_672_000 });
    assert_eq!(body, expected);

    for (json, item, expected) in [
        (
            json!({ "to": "{{ items }}", "ref": "{{ id }}" }),
            json!("{{ to }}"),
            "request: '{{ id }}' is only for one message of a batch",
        ),
        (
            json!({ "text": "{{ text }}" }),
            json!("{{ to }}"),
            "request: has no {{ items }}",
        ),
        (
            json!({ "to": "{{ items }}" }),
            json!({ "to": "{{ items }}" }),
            "batch.item.to: '{{ items }}' is not a variable here",
        ),
    ] {
        let wrong = RequestDescription {
            json: Some(json),
            item: Some(item),
            ..description()
        };
        let error = parse(&wrong).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
