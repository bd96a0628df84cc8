//! The providers' own libraries judge what these tests sign and what the service accepts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use testkit::Backend;
use testkit::receiver::{ReceivedRequest, Receiver, Reply};

use super::presets::form;
use super::signing::{self, Headers};
use super::{SECRET, path, provider, send, start, wait_for_request};
use crate::chain::wait_for_reported_states;

/// A request that reports a message.
struct Signed {
    name: &'static str,
    provider: &'static str,
    key: String,
    url: String,
    body: String,
    headers: Headers,
    is_right: bool,
}

/// What the libraries say about each request.
fn judge(requests: &[Signed]) -> Vec<Value> {
    let described = requests.iter().map(|request| {
        let headers = request.headers.iter();
        let headers: Map<String, Value> = headers
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({
            "provider": request.provider, "key": request.key, "url": request.url, "headers": headers,
            "body": request.body,
        })
    });
    let described: Value = described.collect();
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python/bin/python");
    let mut judge = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../testkit/providers/judge.py"
        ))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this needs scripts/python-packages: {error}"));
    let mut input = judge.stdin.take().expect("it is piped");
    let written = input.write_all(described.to_string().as_bytes());
    written.expect("the judge reads");
    drop(input);
    let output = judge.wait_with_output().expect("the judge ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("a list")
}

fn twilio(url: &str) -> Vec<Signed> {
    let fields = [
        ("MessageSid", "SM1"),
        ("MessageStatus", "delivered"),
        ("To", "+37120000001"),
    ];
    let changed = [
        ("MessageSid", "SM1"),
        ("MessageStatus", "undelivered"),
        ("To", "+37120000001"),
    ];
    let other = format!("{url}0");
    [
        ("another key", "another", url, fields, false),
        ("another URL", SECRET, other.as_str(), fields, false),
        ("another body", SECRET, url, changed, false),
        ("right", SECRET, url, fields, true),
    ]
    .map(|(name, key, signed_url, signed, is_right)| Signed {
        name,
        provider: "twilio",
        key: SECRET.to_owned(),
        url: url.to_owned(),
        body: form(&fields),
        headers: signing::twilio(key, signed_url, &signed),
        is_right,
    })
    .into()
}

fn vonage(url: &str) -> Vec<Signed> {
    let body = json!({ "message_uuid": "1", "status": "delivered" }).to_string();
    [
        ("another key", "another", 300, false),
        ("expired", SECRET, -10, false),
        ("right", SECRET, 300, true),
    ]
    .map(|(name, key, seconds, is_right)| Signed {
        name,
        provider: "vonage",
        key: SECRET.to_owned(),
        url: url.to_owned(),
        body: body.clone(),
        headers: signing::vonage(key, body.as_bytes(), seconds),
        is_right,
    })
    .into()
}

fn telnyx(url: &str) -> Vec<Signed> {
    let report = json!({ "data": { "payload": { "id": "1", "to": [{ "status": "delivered" }] } } });
    let body = report.to_string();
    [
        ("another key", 8, body.as_str(), 0, false),
        ("another body", 7, "{}", 0, false),
        ("old", 7, body.as_str(), 600, false),
        ("right", 7, body.as_str(), 0, true),
    ]
    .map(|(name, seed, signed, seconds, is_right)| Signed {
        name,
        provider: "telnyx",
        key: signing::telnyx_key(7),
        url: url.to_owned(),
        body: body.clone(),
        headers: signing::telnyx(seed, signed.as_bytes(), seconds),
        is_right,
    })
    .into()
}

fn webhook_url(request: &ReceivedRequest) -> String {
    let fields = url::form_urlencoded::parse(&request.body);
    let in_form = fields
        .into_owned()
        .find(|(name, _)| name == "StatusCallback");
    in_form.map_or_else(
        || {
            request.json()["webhook_url"]
                .as_str()
                .expect("a URL")
                .to_owned()
        },
        |(_, url)| url,
    )
}

/// The service accepts what the library of the provider accepts.
#[test]
fn signatures_count_as_in_the_providers_libraries() {
    let server = provider(|_| Reply::answer(202, "{}"));
    let public = signing::telnyx_key(7);
    let carriers = [
        (
            "twilio",
            "+371",
            format!("account_sid = \"AC0\"\nauth_token = \"{SECRET}\""),
        ),
        (
            "vonage",
            "+370",
            format!("api_key = \"a\"\napi_secret = \"b\"\nsignature_secret = \"{SECRET}\""),
        ),
        (
            "telnyx",
            "+372",
            format!("api_key = \"a\"\npublic_key = \"{public}\""),
        ),
    ];
    let url = server.url("");
    let config = carriers.iter().map(|(name, prefix, secrets)| {
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\npreset = \"{name}\"\nbase_url = \"{url}\"\n\
             [carrier.secret]\n{secrets}\n[[route]]\nprefix = \"{prefix}\"\ncarriers = [\"{name}\"]\n"
        )
    });
    let service = start(Backend::Sqlite, config.collect::<String>());
    let receiver = Receiver::start();
    let mut requests = Vec::new();
    let mut expected = Vec::new();
    for (index, to) in ["+37120000001", "+37060000001", "+37250000001"]
        .iter()
        .enumerate()
    {
        let id = send(
            &service,
            &receiver,
            &json!({ "to": to, "from": "+37120000009" }),
        );
        let url = webhook_url(&wait_for_request(&server, index + 1));
        requests.extend([twilio, vonage, telnyx][index](&url));
        expected.push((id, 1, 0));
    }
    for (request, verdict) in requests.iter().zip(judge(&requests)) {
        let (name, of) = (request.name, request.provider);
        assert_eq!(verdict["accepts"], request.is_right, "{of}: {name}");
        if request.is_right
            && let Some(signature) = verdict["signature"].as_str()
        {
            assert_eq!(request.headers[0].1, signature, "{of}");
        }
        let kind = match of {
            "twilio" => "application/x-www-form-urlencoded",
            _ => "application/json",
        };
        let headers = request.headers.iter();
        let mut headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        headers.push(("Content-Type", kind));
        let address = path(&service, &request.url);
        let answer = service.raw("POST", address, &headers, request.body.as_bytes());
        let status = if request.is_right { 200 } else { 403 };
        assert_eq!(answer.status, status, "{of}: {name}");
    }
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 3), expected);
}
