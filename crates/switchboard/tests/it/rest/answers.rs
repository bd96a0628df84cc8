//! Common to all paths: slashes, methods, and the headers of the answers.

use testkit::Backend;

use super::service::{Service, message, sms};

#[test]
fn a_trailing_slash_makes_no_difference() {
    let service = Service::start(Backend::Sqlite);
    let body = sms().to_string();
    let cases = [
        ("POST", "/sms/", 200),
        ("GET", "/sms/?scheduled", 200),
        ("GET", "/sms/status/999/", 404),
        ("DELETE", "/sms/999/", 404),
        ("GET", "/token/", 200),
        ("GET", "/health/live/", 200),
        ("GET", "/sms//", 404),
        ("GET", "//token", 404),
    ];
    for (method, path, status) in cases {
        let body = if method == "POST" {
            body.as_bytes()
        } else {
            b""
        };
        let response = service.call_as(&service.token, method, path, body);
        assert_eq!(
            response.status,
            status,
            "{method} {path}: {}",
            response.text()
        );
        assert_eq!(
            response.header("location"),
            None,
            "{method} {path}: never a redirect"
        );
    }
}

#[test]
fn other_methods_are_refused_with_a_list_of_the_allowed_ones() {
    let service = Service::start(Backend::Sqlite);
    let addresses: [(&str, &[&str]); 7] = [
        ("/sms", &["GET", "HEAD", "POST"]),
        ("/sms/", &["GET", "HEAD", "POST"]),
        ("/sms/status/1", &["GET", "HEAD"]),
        ("/sms/1", &["DELETE"]),
        ("/token", &["GET", "HEAD"]),
        ("/health/ready", &["GET", "HEAD"]),
        ("/openapi.json", &["GET", "HEAD"]),
    ];
    for (path, allowed) in addresses {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
        ] {
            let response = service.call_as("", method, path, b"");
            let case = format!("{method} {path}: {} {}", response.status, response.text());
            if allowed.contains(&method) {
                assert_ne!(response.status, 405, "{case}");
                continue;
            }
            let mut allow: Vec<&str> = response
                .header("allow")
                .expect(&case)
                .split(',')
                .map(str::trim)
                .collect();
            allow.sort_unstable();
            assert_eq!(allow, allowed, "{case}");
            if method == "OPTIONS" {
                assert_eq!((response.status, response.body.len()), (204, 0), "{case}");
            } else {
                assert_eq!(response.status, 405, "{case}");
                let text = message(&response);
                assert!(
                    text.contains(method) && text.contains(path.trim_end_matches('/')),
                    "{case}"
                );
            }
            assert_eq!(
                response.header("access-control-allow-origin"),
                None,
                "{case}"
            );
        }
    }
}

#[test]
fn a_head_is_a_get_without_its_body() {
    let service = Service::start(Backend::Sqlite);
    for path in [
        "/sms?scheduled",
        "/sms",
        "/sms/status/1",
        "/token",
        "/health/live",
        "/nothing",
    ] {
        let get = service.get(path);
        let head = service.call_as(&service.token, "HEAD", path, b"");
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty(), "{path}");
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
}

#[test]
fn an_unknown_path_is_not_found() {
    let service = Service::start(Backend::Sqlite);
    let paths = [
        "/nothing",
        "/SMS",
        "/sms/status",
        "/sms/status/1/2",
        "/token/x",
        "/vibe",
        "/../token",
        "/%00",
        "/sms%2f",
    ];
    for path in paths {
        let response = service.get(path);
        let expected = if path == "/sms/status" { 405 } else { 404 };
        assert_eq!(response.status, expected, "{path}: {}", response.text());
        assert!(!message(&response).is_empty(), "{path}");
    }
    let long = format!("/{}", "x".repeat(5000));
    let response = service.get(&long);
    assert_eq!(response.status, 404);
    assert!(response.body.len() < 300, "a long path is shortened");
}

#[test]
fn a_valid_request_id_is_returned() {
    let service = Service::start(Backend::Sqlite);
    let longest = "a".repeat(64);
    let too_long = "a".repeat(65);
    let cases = [
        ("a word", "my-request-1", true),
        ("the longest", &longest, true),
        ("too long", &too_long, false),
        ("with a space", "my request", false),
        ("empty", "", false),
        ("not ASCII", "prüfung", false),
    ];
    for (case, id, returned) in cases {
        let headers = [("X-Request-Id", id)];
        let response = service.call_with(&service.token, "GET", "/token", &headers, b"");
        let answered = response.header("x-request-id").expect(case);
        assert_eq!(answered == id, returned, "{case}: {answered}");
    }
    let generated = |path: &str| {
        service
            .get(path)
            .header("x-request-id")
            .expect("always")
            .to_owned()
    };
    assert_ne!(
        generated("/token"),
        generated("/token"),
        "each request has its own"
    );
    assert_ne!(generated("/nothing"), generated("/nothing"), "errors too");
}
