//! Tokens: which are refused, from where, and how soon.

use testkit::Backend;
use testkit::http::Response;

use super::service::{Service, check, message, sms, wait_for};

fn describe(service: &Service, token: &str) -> Response {
    service.call_as(token, "GET", "/token", b"")
}

/// Waits until the token is answered with this status, without a restart.
fn wait_for_status(service: &Service, token: &str, status: u16) -> Response {
    wait_for(&format!("status {status}"), || {
        let response = describe(service, token);
        (response.status == status).then_some(response)
    })
}

#[test]
fn invalid_tokens_are_refused() {
    let service = Service::start(Backend::Sqlite);
    let good = service.token.clone();
    let mut mistyped = good.clone();
    mistyped.replace_range(10..11, if &good[10..11] == "x" { "y" } else { "x" });
    let cases = [
        ("empty", String::new()),
        ("nonsense", "nonsense".to_owned()),
        ("mistyped", mistyped),
        ("cut", good[..good.len() - 1].to_owned()),
        ("longer", format!("{good}x")),
        ("in capitals", good.to_uppercase()),
        (
            "of the right form",
            "sb_00000000000000000000000000000000000000".to_owned(),
        ),
        ("as a bearer", format!("Bearer {good}")),
        ("not ASCII", "sb_ü".to_owned()),
        ("very long", "x".repeat(8000)),
        ("SQL", "' OR 1=1 --".to_owned()),
    ];
    for (case, token) in cases {
        let response = describe(&service, &token);
        assert_eq!(response.status, 401, "{case}: {}", response.text());
        assert!(
            message(&response).contains("not valid"),
            "{case}: {}",
            response.text()
        );
    }
    let response = service.raw(
        "GET",
        "/token",
        &[("Authorization", &format!("Bearer {good}"))],
        b"",
    );
    assert_eq!(response.status, 401, "only the documented header counts");
}

fn changes_take_effect_without_a_restart(backend: Backend) {
    let service = Service::start(backend);
    let kept = service.token.clone();
    let revoked = service.create_token("main", &[]);
    assert_eq!(describe(&service, &revoked.token).status, 200);
    assert!(
        service
            .server
            .cli(&["token", "revoke", &revoked.id])
            .status
            .success()
    );
    let response = wait_for_status(&service, &revoked.token, 401);
    assert!(
        message(&response).contains("revoked"),
        "{}",
        response.text()
    );
    assert_eq!(
        describe(&service, &kept).status,
        200,
        "other tokens stay valid"
    );

    let other = service.create_account("other");
    assert_eq!(describe(&service, &other).status, 200);
    assert!(
        service
            .server
            .cli(&["account", "suspend", "other"])
            .status
            .success()
    );
    let response = wait_for_status(&service, &other, 403);
    assert!(
        message(&response).contains("suspended"),
        "{}",
        response.text()
    );
    let body = sms().to_string();
    assert_eq!(
        service
            .call_as(&other, "POST", "/sms", body.as_bytes())
            .status,
        403
    );
    assert_eq!(
        describe(&service, &kept).status,
        200,
        "other accounts are not affected"
    );
    assert!(
        service
            .server
            .cli(&["account", "resume", "other"])
            .status
            .success()
    );
    wait_for_status(&service, &other, 200);

    let short = service.create_token("main", &["--expires", "1s"]);
    let response = wait_for_status(&service, &short.token, 401);
    assert!(
        message(&response).contains("expired"),
        "{}",
        response.text()
    );
}

on_both_backends!(changes_take_effect_without_a_restart);

#[test]
fn a_token_may_be_bound_to_addresses() {
    let service = Service::start(Backend::Sqlite);
    let cases: [(&str, &[&str], u16); 7] = [
        ("the address", &["127.0.0.1"], 200),
        ("a network", &["127.0.0.0/8"], 200),
        ("its mapped form", &["::ffff:127.0.0.1"], 200),
        ("a mapped network", &["::ffff:127.0.0.0/104"], 200),
        ("one of several", &["192.0.2.1", "127.0.0.1"], 200),
        ("another network", &["192.0.2.0/24"], 403),
        ("the other family", &["::1"], 403),
    ];
    for (case, networks, status) in cases {
        let flags: Vec<&str> = networks
            .iter()
            .flat_map(|network| ["--allow-ip", network])
            .collect();
        let token = service.create_token("main", &flags).token;
        let response = describe(&service, &token);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        if status == 403 {
            assert!(
                message(&response).contains("127.0.0.1"),
                "{case}: {}",
                response.text()
            );
        }
        let forwarded = [("X-Forwarded-For", "192.0.2.1")];
        let response = service.call_with(&token, "GET", "/token", &forwarded, b"");
        assert_eq!(
            response.status, status,
            "{case}: nobody may claim another address"
        );
    }
}

#[test]
fn a_trusted_proxy_names_the_caller() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env(
            "SWITCHBOARD_AUTH__TRUSTED_PROXIES",
            "[\"127.0.0.0/8\", \"10.0.0.0/8\"]",
        )
    });
    let token = service
        .create_token("main", &["--allow-ip", "192.0.2.0/24"])
        .token;
    let cases: [(&str, &[&str], u16); 10] = [
        ("nobody named", &[], 403),
        ("the caller", &["192.0.2.7"], 200),
        ("in its mapped form", &["::ffff:192.0.2.7"], 200),
        ("with a port", &["192.0.2.7:4711"], 200),
        ("another", &["198.51.100.1"], 403),
        ("behind two proxies", &["192.0.2.7, 10.0.0.1"], 200),
        (
            "behind two proxies, each its own header",
            &["192.0.2.7", "10.0.0.1"],
            200,
        ),
        ("a caller's own claim", &["192.0.2.7, 198.51.100.1"], 403),
        (
            "a caller's own claim in a header of its own",
            &["192.0.2.7", "198.51.100.1"],
            403,
        ),
        ("no address", &["unknown"], 403),
    ];
    for (case, lines, status) in cases {
        let headers: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| ("X-Forwarded-For", *line))
            .collect();
        let response = service.call_with(&token, "GET", "/token", &headers, b"");
        assert_eq!(response.status, status, "{case}: {}", response.text());
    }
}

#[test]
fn a_token_in_the_address_counts_only_where_that_is_switched_on() {
    for (switched, expected) in [("false", 401), ("true", 200)] {
        let service = Service::with(Backend::Sqlite, |server| {
            server.env("SWITCHBOARD_AUTH__QUERY_TOKEN", switched)
        });
        let token = &service.token;
        for path in [
            format!("/token?at={token}"),
            format!("/sms?scheduled&at={token}"),
        ] {
            let response = service.raw("GET", &path, &[], b"");
            check(&path, &response);
            assert_eq!(response.status, expected, "{switched}: {}", response.text());
        }
        let path = format!("/token?at={token}");
        assert_eq!(
            service.call_as("sb_wrong", "GET", &path, b"").status,
            401,
            "the header wins"
        );
        assert_eq!(
            service
                .call_as(token, "GET", "/token?at=sb_wrong", b"")
                .status,
            200,
            "the header wins"
        );
        assert_eq!(
            service.raw("GET", "/token?at=sb_wrong", &[], b"").status,
            401
        );
        assert_eq!(service.raw("GET", "/token?at=", &[], b"").status, 401);
    }
}

#[test]
fn wrong_tokens_are_slowed_by_address_and_right_ones_pass() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "[\"127.0.0.0/8\"]")
    });
    let from = |address: &str, token: &str| {
        service.call_with(token, "GET", "/token", &[("X-Forwarded-For", address)], b"")
    };
    let answers: Vec<Response> = (0..200).map(|_| from("192.0.2.1", "sb_wrong")).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses[..10], [401; 10], "a few mistakes are forgiven");
    let slowed = answers
        .iter()
        .find(|answer| answer.status == 429)
        .expect("many are slowed down");
    let wait: u32 = slowed
        .header("retry-after")
        .expect("a header")
        .parse()
        .expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(
        message(slowed).contains("Too many wrong API tokens"),
        "{}",
        slowed.text()
    );
    assert!(
        statuses.iter().all(|status| matches!(status, 401 | 429)),
        "{statuses:?}"
    );
    assert_eq!(
        from("192.0.2.1", &service.token).status,
        200,
        "a valid token from there passes"
    );
    assert_eq!(
        from("192.0.2.2", "sb_wrong").status,
        401,
        "another address is not slowed"
    );
}

#[test]
fn the_prefix_of_the_headers_is_a_setting() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_SERVER__HEADER_PREFIX", "X-Acme")
    });
    let body = sms().to_string();
    let content = ("Content-Type", "application/json");
    let response = service.raw(
        "POST",
        "/sms",
        &[("X-Acme-Token", &service.token), content],
        body.as_bytes(),
    );
    assert_eq!(
        (response.status, response.header("x-acme-amount-sent")),
        (200, Some("1"))
    );
    let response = service.raw(
        "POST",
        "/sms",
        &[("X-Service-Token", &service.token), content],
        body.as_bytes(),
    );
    assert_eq!(response.status, 401);
    let document = service.raw("GET", "/openapi.json", &[], b"").text();
    assert!(document.contains("X-Acme-Token") && document.contains("X-Acme-Amount-Sent"));
    assert!(!document.contains("X-Service"), "{document}");
    assert!(
        service.server.output().contains("'X-Acme-Token: "),
        "the printed command uses it"
    );
}
