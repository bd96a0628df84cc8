//! Client registration, and clients that are refused. RFC 7591; RFC 8252, section 8.

use serde_json::{Value, json};
use testkit::Backend;

use super::site::{REDIRECT, Site, error};

#[test]
fn a_registered_client_gets_its_metadata() {
    let site = Site::start(Backend::Sqlite);
    let metadata = json!({
        "client_name": " Acme <b>Desk</b> ", "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"],
        "token_endpoint_auth_method": "client_secret_basic", "logo_uri": "https://client.example/logo.png",
        "client_id": "chosen by itself", "client_secret": "brought along",
    });
    let answer = site.register_as(&metadata);
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let registered = answer.json();
    let id = registered["client_id"].as_str().expect("an ID");
    assert!(id.starts_with("client_") && id.len() > 40, "{id}");
    let expected = json!({
        "client_id": id, "client_id_issued_at": registered["client_id_issued_at"].as_i64().expect("a time"),
        "client_name": "Acme <b>Desk</b>", "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    assert_eq!(registered, expected);
}

#[test]
fn invalid_clients_are_refused() {
    let site = Site::start(Backend::Sqlite);
    let with = |field: &str, value: Value| {
        let mut metadata = json!({ "client_name": "Acme", "redirect_uris": [REDIRECT] });
        metadata[field] = value;
        metadata
    };
    let redirect = |uri: &str| with("redirect_uris", json!([uri]));
    let (uri, other) = ("invalid_redirect_uri", "invalid_client_metadata");
    let long = format!("https://client.example/{}", "a".repeat(1024));
    for (name, expected, metadata) in [
        ("no redirects", uri, json!({ "client_name": "Acme" })),
        ("an empty list", uri, with("redirect_uris", json!([]))),
        (
            "too many",
            uri,
            with("redirect_uris", json!(vec![REDIRECT; 11])),
        ),
        (
            "one bad among good",
            uri,
            with("redirect_uris", json!([REDIRECT, "http://evil.example/"])),
        ),
        ("a very long one", uri, redirect(&long)),
        ("plain http", uri, redirect("http://client.example/cb")),
        ("another machine", uri, redirect("http://192.168.0.1/cb")),
        ("all machines", uri, redirect("http://0.0.0.0/cb")),
        (
            "a name like localhost",
            uri,
            redirect("http://localhost.evil.example/cb"),
        ),
        ("a script", uri, redirect("javascript:alert(1)")),
        (
            "a script with slashes",
            uri,
            redirect("javascript://client.example/%0aalert(1)"),
        ),
        ("data", uri, redirect("data:text/html,x")),
        ("a file", uri, redirect("file:///etc/passwd")),
        ("a generic scheme", uri, redirect("myapp://cb")),
        ("out of band", uri, redirect("urn:ietf:wg:oauth:2.0:oob")),
        ("a fragment", uri, redirect("https://client.example/cb#x")),
        ("a user part", uri, redirect("https://a@client.example/cb")),
        ("dots", uri, redirect("https://client.example/a/../cb")),
        ("relative", uri, redirect("/cb")),
        ("empty", uri, redirect("")),
        (
            "a line break",
            uri,
            redirect("https://client.example/cb\r\nX: y"),
        ),
        ("not a list", other, with("redirect_uris", json!(REDIRECT))),
        ("numbers", other, with("redirect_uris", json!([1]))),
        ("an empty name", other, with("client_name", json!(""))),
        (
            "a long name",
            other,
            with("client_name", json!("n".repeat(81))),
        ),
        (
            "a name of two lines",
            other,
            with("client_name", json!("Acme\nBank")),
        ),
        (
            "a name with a direction override",
            other,
            with("client_name", json!("Acme\u{202E}knaB")),
        ),
        (
            "a name with an invisible character",
            other,
            with("client_name", json!("Ac\u{200B}me")),
        ),
        (
            "a name that is not a string",
            other,
            with("client_name", json!({})),
        ),
        (
            "implicit only",
            other,
            with("response_types", json!(["token"])),
        ),
        (
            "passwords only",
            other,
            with("grant_types", json!(["password"])),
        ),
        ("a list of clients", other, json!([])),
    ] {
        let before = site.issued();
        let answer = site.register_as(&metadata);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        assert_eq!(error(&answer), expected, "{name}");
        assert_eq!(site.issued(), before, "{name}");
    }
}

#[test]
fn wildcards_in_redirects_are_refused() {
    let site = Site::start(Backend::Sqlite);
    for uri in [
        "https://*/cb",
        "https://*.client.example/cb",
        "https://client.example/*",
        "https://client.example/cb?x=*",
    ] {
        let answer = site.register_as(&json!({ "redirect_uris": [uri] }));
        assert_eq!(
            (answer.status, error(&answer)),
            (400, "invalid_redirect_uri".into()),
            "{uri}"
        );
    }
}

#[test]
fn registration_is_a_json_post_and_limited() {
    let site = Site::start(Backend::Sqlite);
    let good = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let large = json!({ "redirect_uris": [REDIRECT], "x": "x".repeat(20_000) }).to_string();
    let json = ("Content-Type", "application/json");
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let before = site.issued();
    for (name, status, method, headers, body) in [
        ("GET", 405, "GET", vec![], ""),
        ("PUT", 405, "PUT", vec![json], good.as_str()),
        ("a form", 400, "POST", vec![form], &good),
        ("no type", 400, "POST", vec![], &good),
        ("not JSON", 400, "POST", vec![json], "{"),
        ("nothing", 400, "POST", vec![json], ""),
        (
            "a field twice",
            400,
            "POST",
            vec![json],
            r#"{"redirect_uris":[],"redirect_uris":["https://a.example/"]}"#,
        ),
        ("too large", 400, "POST", vec![json], &large),
    ] {
        let answer = site.call(method, "/oauth/register", &headers, body.as_bytes());
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        error(&answer);
    }
    assert_eq!(site.issued(), before);
    let same = || {
        let path = "/oauth/register";
        site.service.raw("POST", path, &[json], good.as_bytes())
    };
    let registered = (0..50)
        .map(|_| same())
        .take_while(|answer| answer.status == 201);
    assert_eq!(registered.count(), 20);
    let slowed = same();
    assert_eq!(slowed.status, 429);
    assert!(slowed.header("retry-after").is_some());
}
