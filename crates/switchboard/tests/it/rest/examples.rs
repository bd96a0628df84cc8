//! The examples of the `OpenAPI` document, which the form of `/docs` sends, work.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::schemathesis::fill;
use super::service::{Service, message};

/// An operation with the request that its examples make.
struct Example {
    id: String,
    method: String,
    path: String,
    body: Vec<u8>,
    responses: Value,
}

impl Example {
    fn read(document: &Value, path: &str, method: &str, operation: &Value) -> Self {
        let mut address = path.to_owned();
        let mut query = Vec::new();
        let parameters = operation["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            let Some(example) = find_example(document, parameter) else {
                assert_ne!(parameter["required"], true, "{method} {path}: {name}");
                continue;
            };
            let text = example.as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| example.to_string());
            assert!(!text.is_empty(), "{method} {path}: forms refuse {name}");
            let text = text.replace('+', "%2B");
            match parameter["in"].as_str() {
                Some("path") => address = address.replace(&format!("{{{name}}}"), &text),
                Some("query") => query.push(format!("{name}={text}")),
                other => panic!("{other:?}"),
            }
        }
        if !query.is_empty() {
            address = format!("{address}?{}", query.join("&"));
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        let body = find_example(document, content).map(|body| body.to_string().into_bytes());
        Self {
            id: operation["operationId"].as_str().expect("an ID").to_owned(),
            method: method.to_uppercase(),
            path: address,
            body: body.unwrap_or_default(),
            responses: operation["responses"].clone(),
        }
    }

    fn send(&self, service: &Service, token: &str) -> Response {
        service.call_as(token, &self.method, &self.path, &self.body)
    }

    /// The documented message of a status.
    fn message(&self, status: u16) -> Option<&str> {
        let response = &self.responses[status.to_string()];
        response["content"]["application/json"]["example"]["message"].as_str()
    }
}

/// The example of a parameter, a body or a schema.
fn find_example(document: &Value, described: &Value) -> Option<Value> {
    if let Some(example) = described.get("example") {
        return Some(example.clone());
    }
    if let Some(reference) = described["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return find_example(document, document.pointer(pointer).expect("a schema"));
    }
    if let Some(schema) = described.get("schema") {
        return find_example(document, schema);
    }
    let items = described.get("items")?;
    find_example(document, items).map(|item| json!([item]))
}

fn examples(service: &Service) -> Vec<Example> {
    let document = service.get("/openapi.json").json();
    let mut examples = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            examples.push(Example::read(&document, path, method, operation));
        }
    }
    assert!(examples.len() > 25, "{}", examples.len());
    examples
}

#[test]
fn every_example_is_accepted_or_names_what_is_not_there() {
    let service = Service::start(Backend::Sqlite);
    fill(&service);
    for example in examples(&service) {
        let response = example.send(&service, &service.token);
        let case = format!("{} {}: {}", example.id, response.status, response.text());
        match (example.id.as_str(), response.status) {
            // The name to register is that of the approved sender.
            (_, 200) | ("registerSender", 409) => {}
            (_, 404) => assert_eq!(Some(&*message(&response)), example.message(404), "{case}"),
            _ => panic!("{case}"),
        }
        let works = ["addOptOut", "removeOptOut", "listScheduledSms", "sendViber"];
        assert!(
            response.status == 200 || !works.contains(&&*example.id),
            "{case}"
        );
    }
}

#[test]
fn the_document_names_the_permission_of_each_operation() {
    let service = Service::start(Backend::Sqlite);
    let token = |permission: &str| service.create_token("main", &["--permission", permission]);
    let (rates, numbers) = (token("sms:rates"), token("numbers:read"));
    for example in examples(&service) {
        let expected = example.message(403).expect("an example");
        if example.id == "readToken" {
            continue;
        }
        let lacks_rates = expected.contains("'sms:rates'");
        let token = if lacks_rates { &numbers } else { &rates };
        let refused = example.send(&service, &token.token);
        assert_eq!(refused.status, 403, "{}: {}", example.id, refused.text());
        assert_eq!(message(&refused), expected, "{}", example.id);
        assert!(refused.header("x-required-permission").is_some());
    }
}
