//! The `OpenAPI` document and its page.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use serde_json::{Map, Value, json};
use testkit::Backend;

use super::service::{Service, message, sms_with};

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/openapi.json");
const UPDATE: &str = "UPDATE_SNAPSHOTS";

#[test]
fn the_document_equals_its_snapshot() {
    let service = Service::start(Backend::Sqlite);
    let response = service.get("/openapi.json");
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json"))
    );
    let served = serde_json::to_string_pretty(&response.json()).expect("JSON") + "\n";
    if env::var_os(UPDATE).is_some() {
        fs::write(Path::new(SNAPSHOT), &served).expect("the snapshot can be written");
    }
    let committed = fs::read_to_string(SNAPSHOT).unwrap_or_default();
    assert!(
        served == committed,
        "the API changed and crates/web/openapi.json did not; if that is intended, update it with\n  \
         {UPDATE}=1 cargo test -p switchboard --test it the_document_equals_its_snapshot\n\
         and commit it. First difference: {:?}",
        served
            .lines()
            .zip(committed.lines())
            .find(|(new, old)| new != old)
    );
}

fn document(service: &Service) -> Value {
    service.get("/openapi.json").json()
}

#[test]
fn the_document_is_complete() {
    let service = Service::start(Backend::Sqlite);
    let document = document(&service);
    let version = document["openapi"].as_str().expect("a version");
    assert!(version.starts_with("3.1."), "{version}");
    assert_eq!(
        document["components"]["securitySchemes"]["token"]["name"],
        "X-Service-Token"
    );
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let case = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{case} says what it does");
            let statuses = operation["responses"].as_object().expect("responses");
            let is_error = |status: &&String| status.starts_with(['4', '5']);
            for status in statuses.keys().filter(is_error) {
                let response = resolve(&document, &statuses[status]);
                let content = &response["content"]["application/json"];
                let schema = &content["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Failure", "{case} {status}");
                let example = content["example"]["message"].as_str().unwrap_or_default();
                assert!(example.ends_with('.'), "{case} {status}: {example}");
                let headers = &response["headers"];
                for (of, header) in [
                    ("400", "X-Error-Code"),
                    ("403", "X-Required-Permission"),
                    ("429", "Retry-After"),
                    ("429", "RateLimit"),
                    ("503", "Retry-After"),
                ] {
                    let declared = headers[header].is_object();
                    assert!(declared || status != of, "{case} {status}: {header}");
                }
            }
            for status in ["429", "500", "503"] {
                assert!(statuses.contains_key(status), "{case} {status}");
            }
            if statuses.contains_key("304") {
                for status in ["200", "304"] {
                    assert!(statuses[status]["headers"]["ETag"].is_object(), "{case}");
                }
            }
            assert!(
                statuses.contains_key("200") && statuses.contains_key("401"),
                "{case}"
            );
        }
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
}

fn resolve<'a>(document: &'a Value, response: &'a Value) -> &'a Value {
    let pointer = response["$ref"]
        .as_str()
        .map(|to| to.trim_start_matches('#'));
    pointer.map_or(response, |to| document.pointer(to).expect("a response"))
}

#[test]
fn operations_and_callbacks_are_described() {
    let service = Service::start(Backend::Sqlite);
    let document = document(&service);
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("an ID").to_owned();
            assert!(
                ids.insert(id.clone()),
                "{method} {path}: {id} is there twice"
            );
        }
    }
    let webhooks = document["webhooks"].as_object().expect("webhooks");
    let names: Vec<&str> = webhooks.keys().map(String::as_str).collect();
    let expected = [
        "deliveryReport",
        "inboundMessage",
        "lookupResult",
        "senderNotification",
    ];
    assert_eq!(names, expected);
    for (name, webhook) in webhooks {
        let headers = webhook["post"]["parameters"].as_array().expect("headers");
        let headers: Vec<&str> = headers
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        let signature = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        assert_eq!(headers, signature, "{name}");
    }
    let allowed = service.raw("OPTIONS", "/numberCorrection", &[], b"");
    let allowed = allowed.header("allow").unwrap_or_default();
    let mut allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields
                .values()
                .for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

#[test]
fn every_documented_field_is_really_read() {
    let service = Service::start(Backend::Sqlite);
    let schema = &document(&service)["components"]["schemas"]["SmsRequest"];
    let properties = schema["properties"].as_object().expect("properties");
    let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
    let contract = [
        "to",
        "from",
        "message",
        "dlrUrl",
        "priority",
        "scheduled",
        "udh",
        "coding",
        "testMode",
        "expireIn",
        "correctBy",
    ];
    assert_eq!(names, BTreeSet::from(contract));
    assert_eq!(schema["required"], json!(["to", "from", "message"]));
    for name in names {
        let wrong = Value::Object(Map::from_iter([(name.to_owned(), json!({}))]));
        let response = service.send(&sms_with(&wrong));
        assert_eq!(response.status, 400, "{name}: {}", response.text());
        let expected = format!("Invalid value for field '{name}': an object was sent");
        assert!(
            message(&response).starts_with(&expected),
            "{name}: {}",
            response.text()
        );
    }
}

#[test]
fn the_documented_example_is_accepted() {
    let service = Service::start(Backend::Sqlite);
    let example = &document(&service)["components"]["schemas"]["SmsRequest"]["example"];
    assert_eq!(service.accept(example).len(), 1);
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let service = Service::start(Backend::Sqlite);
    let page = service.raw("GET", "/docs/", &[], b"");
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"))
    );
    let html = page.text();
    assert!(!html.contains("//"), "an outside address: {html}");
    let assets: Vec<&str> = ["src=\"", "href=\""]
        .iter()
        .flat_map(|attribute| html.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(assets.len() >= 5, "{html}");
    for asset in assets {
        let path = format!("/docs/{}", asset.trim_start_matches("./"));
        let response = service.raw("GET", &path, &[], b"");
        assert_eq!(response.status, 200, "{path}");
        assert!(!response.body.is_empty(), "{path}");
        let gzip = [("Accept-Encoding", "gzip")];
        let compressed = service.raw("GET", &path, &gzip, b"");
        let has_gzip = |body: &[u8]| body.starts_with(&[0x1F, 0x8B]);
        let is_encoded = compressed.header("content-encoding") == Some("gzip");
        assert_eq!(has_gzip(&compressed.body), is_encoded, "{path}");
        assert!(!has_gzip(&response.body), "{path}");
    }
    let start = service
        .raw("GET", "/docs/swagger-initializer.js", &[], b"")
        .text();
    assert!(
        start.contains("/openapi.json") && !start.contains("http"),
        "{start}"
    );

    assert_eq!(service.raw("GET", "/docs/nothing.js", &[], b"").status, 404);
    let bare = service.raw("GET", "/docs", &[], b"");
    let status = bare
        .header("location")
        .map_or(bare.status, |to| service.raw("GET", to, &[], b"").status);
    assert_eq!(status, 200, "the path without a slash works, too");
}
