//! Health and metrics.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;

use testkit::http;
use testkit::{Backend, Process, temp_dir};

use super::service::{Service, binary, check, sms, sms_with, wait_for};
use serde_json::json;

fn health_and_metrics_are_served(backend: Backend) {
    let service = Service::start(backend);
    for (path, text) in [("/health/live", "alive\n"), ("/health/ready", "ready\n")] {
        let response = service.raw("GET", path, &[], b"");
        check(path, &response);
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, text),
            "{path}"
        );
    }
    service.accept(&sms_with(
        &json!({"to": ["+37120000001", "+37120000002"], "message": "a".repeat(161)}),
    ));
    service.send(&json!({}));
    let response = service.raw("GET", "/metrics", &[], b"");
    check("/metrics", &response);
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = response.text();
    for line in [
        "switchboard_messages_accepted_total{channel=\"sms\"} 2",
        "switchboard_parts_accepted_total{channel=\"sms\"} 4",
        "switchboard_accept_batches_total 1",
        "switchboard_http_requests_total{status=\"4xx\"} 1",
        "switchboard_http_requests_total{status=\"2xx\"} 3",
        "switchboard_http_requests_shed_total 0",
        "# HELP switchboard_messages_accepted_total Messages stored, one for each recipient.",
        "# TYPE switchboard_http_request_seconds histogram",
    ] {
        assert!(
            text.lines().any(|shown| shown == line),
            "no {line:?} in:\n{text}"
        );
    }
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let value = line.rsplit(' ').next().expect("a value");
        assert!(
            line.starts_with("switchboard_") && value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
}

/// Waits until the metrics have this line.
fn wait_for_line(service: &Service, line: &str) {
    wait_for(line, || {
        let text = service.raw("GET", "/metrics", &[], b"").text();
        text.lines().any(|shown| shown == line).then_some(())
    });
}

fn ended_messages_are_counted_with_their_carrier_and_country(backend: Backend) {
    let service = Service::start(backend);
    service.accept(&sms_with(&json!({"to": ["+37120000001", "+37120000002"]})));
    service.accept(&sms_with(&json!({"to": ["+37120000003"], "testMode": "2"})));
    let ended = "switchboard_messages_ended_total{channel=\"sms\"";
    for line in [
        &format!("{ended},carrier=\"simulator\",country=\"LV\",outcome=\"delivered\"}} 2"),
        &format!("{ended},carrier=\"none\",country=\"LV\",outcome=\"failed\"}} 1"),
        "switchboard_message_seconds_count 3",
        "switchboard_messages_waiting{lane=\"normal\"} 0",
        "switchboard_messages_oldest_seconds{lane=\"normal\"} 0",
        "switchboard_callbacks_waiting 0",
        "switchboard_callbacks_oldest_seconds 0",
        "switchboard_callback_host_waiting{host=\"other\"} 0",
        "switchboard_task_restarts_total{task=\"monitoring\"} 0",
        "switchboard_database_connections_waiting 0",
    ] {
        wait_for_line(&service, line);
    }
    let text = service.raw("GET", "/metrics", &[], b"").text();
    for name in [
        "switchboard_database_size_bytes",
        "switchboard_database_commit_seconds_count",
        "switchboard_disk_free_bytes",
        "switchboard_disk_size_bytes",
        "switchboard_database_connections_max",
    ] {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{name}: {line:?}");
    }
    assert!(
        !text.contains("switchboard_account_"),
        "accounts are off by default"
    );
    // Every metric has its help.
    let metrics = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for metric in metrics.filter_map(|line| line.split(' ').next()) {
        assert!(text.contains(&format!("# HELP {metric} ")), "{metric}");
    }
}

on_both_backends!(
    health_and_metrics_are_served,
    ended_messages_are_counted_with_their_carrier_and_country
);

#[test]
fn accounts_have_metrics_if_that_is_configured() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_METRICS__ACCOUNTS", "true")
    });
    wait_for_line(
        &service,
        "switchboard_account_left_days{account=\"main\"} 3650",
    );
}

/// A port that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address")
}

#[test]
fn metrics_are_not_published_through_a_proxy_on_the_same_machine() {
    let service = Service::start(Backend::Sqlite);
    for header in [
        ("X-Forwarded-For", "203.0.113.7"),
        ("Forwarded", "for=203.0.113.7"),
        ("X-Real-IP", "203.0.113.7"),
        ("Via", "1.1 proxy"),
    ] {
        let response = service.raw("GET", "/metrics", &[header], b"");
        check("/metrics", &response);
        assert_eq!(response.status, 403, "{header:?}");
        assert!(!response.text().contains("switchboard_"), "{header:?}");
    }
    let mut connection = super::bad_http::open(&service);
    let named = "GET /metrics HTTP/1.1\r\nHost: sms.example.com\r\n\r\n";
    connection.send(named.as_bytes()).expect("sent");
    assert_eq!(connection.read_response().expect("an answer").status, 403);
    assert_eq!(service.raw("GET", "/metrics", &[], b"").status, 200);
}

#[test]
fn a_token_gives_access_to_the_metrics_behind_a_proxy() {
    const TOKEN: &str = "a-token-for-scrapers-0123456789";
    let behind_a_proxy = ("X-Forwarded-For", "203.0.113.7");
    let bearer = format!("Bearer {TOKEN}");
    let headers: [(&[(&str, &str)], u16); 6] = [
        (&[], 200),
        (&[behind_a_proxy], 403),
        (&[behind_a_proxy, ("Authorization", &bearer)], 200),
        (&[behind_a_proxy, ("Authorization", TOKEN)], 403),
        (
            &[
                behind_a_proxy,
                ("Authorization", "Bearer a-token-for-scrapers-0123456788"),
            ],
            403,
        ),
        (&[behind_a_proxy, ("Authorization", "Bearer ")], 403),
    ];
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_METRICS__TOKEN", TOKEN)
    });
    for (headers, status) in headers {
        let response = service.raw("GET", "/metrics", headers, b"");
        check("/metrics", &response);
        assert_eq!(response.status, status, "{headers:?}");
    }
    assert!(!service.server.output().contains(TOKEN));

    let private = free_address();
    let _service = Service::with(Backend::Sqlite, |server| {
        server
            .env("SWITCHBOARD_METRICS__TOKEN", TOKEN)
            .env("SWITCHBOARD_METRICS__LISTEN", private.to_string())
    });
    for (headers, status) in [(&[][..], 403), (&[("Authorization", bearer.as_str())], 200)] {
        let response = http::request(private, "GET", "/metrics", headers, b"");
        assert_eq!(response.expect("an answer").status, status, "{headers:?}");
    }
}

#[test]
fn metrics_with_their_own_listener_are_served_only_there() {
    let private = free_address();
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_METRICS__LISTEN", private.to_string())
    });
    service.accept(&sms());
    assert_eq!(service.get("/metrics").status, 404);
    let status = |path: &str| http::request(private, "GET", path, &[], b"").expect(path);
    let metrics = status("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .text()
            .contains("switchboard_messages_accepted_total{channel=\"sms\"} 1"),
        "{}",
        metrics.text()
    );
    for path in [
        "/token",
        "/sms?scheduled",
        "/dashboard",
        "/openapi.json",
        "/docs/",
    ] {
        let response = status(path);
        check(path, &response);
        assert_eq!(
            response.status, 404,
            "{path} is not served on the metrics listener"
        );
    }
}

#[test]
fn metrics_are_not_served_on_a_public_address() {
    let folder = temp_dir("data").expect("a temporary folder");
    let mut command = Command::new(binary());
    command
        .args(["serve", "--listen", "0.0.0.0:0", "--data-dir"])
        .arg(folder.path())
        .current_dir(folder.path());
    let process = Process::start(command).expect("it starts");
    let status = |path: &str| {
        http::request(process.addr(), "GET", path, &[], b"")
            .expect(path)
            .status
    };
    assert_eq!(status("/metrics"), 404);
    assert_eq!(
        (
            status("/health/live"),
            status("/health/ready"),
            status("/token")
        ),
        (200, 200, 401)
    );
}
