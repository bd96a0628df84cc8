//! The server, the client and the load generator of `testkit`, with the bare handler of the benchmarks as the service.
//! A script with the service's command line starts it.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::load::{self, Load, Requests, RunLimit};
use testkit::{Backend, Server, ServerBuilder, TEST_TIMEOUT, http};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BODY: &[u8] = br#"{"to":"1","from":"a","message":"m"}"#;

fn fake_service(backend: Backend) -> ServerBuilder {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-switchboard");
    Server::builder(script, backend).env("BENCH", env!("CARGO_BIN_EXE_bench"))
}

#[test]
fn a_server_answers_keeps_its_data_over_a_restart_and_ends_by_signal() {
    for backend in Backend::ALL {
        let mut server = fake_service(backend).start();
        let response = http::request(server.addr(), "POST", "/sms", &[JSON], BODY).expect("answer");
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, r#"["1"]"#)
        );
        assert_eq!(server.url("/sms"), format!("http://{}/sms", server.addr()));
        assert!(server.output().contains("listening on"));

        server.kill9();
        assert!(
            http::request(server.addr(), "GET", "/", &[], b"").is_err(),
            "still running"
        );
        server.restart();
        server.restart();
        let printed = server.cli_json(&["token", "create"]);
        assert_eq!(
            (&printed["token"], &printed["starts"]),
            (&"token".into(), &3.into())
        );
        assert!(
            !server.terminate().success(),
            "the bare handler does not handle SIGTERM"
        );
    }
}

#[test]
fn each_backend_gets_its_database_and_the_folder_is_removed_afterwards() {
    for backend in Backend::ALL {
        let server = fake_service(backend).config("a = 1").start();
        let data = server.data_dir();
        let starts = std::fs::read_to_string(data.join("starts")).expect("the script wrote it");
        assert_eq!(starts.trim(), server.database_url().unwrap_or("sqlite"));
        drop(server);
        assert!(!data.exists());
    }
}

#[test]
fn the_error_of_a_server_that_refuses_to_start_gives_the_reason() {
    let error = fake_service(Backend::Sqlite)
        .env("REFUSE", "bad key")
        .try_start()
        .expect_err("refusal");
    assert!(
        format!("{error:#}").contains("refused: bad key"),
        "{error:#}"
    );
}

#[test]
fn a_connection_is_kept_open_and_half_a_request_is_not_answered() {
    let server = fake_service(Backend::Sqlite).start();
    let mut connection = http::Connection::open(server.addr()).expect("connect");
    for id in 1..=3 {
        let response = connection
            .request("POST", "/sms", &[JSON], BODY)
            .expect("answer");
        assert_eq!(response.json(), serde_json::json!([id.to_string()]));
    }
    connection
        .send(b"POST /sms HTTP/1.1\r\nContent-Le")
        .expect("half a head");
    connection.set_deadline(Duration::from_millis(50));
    assert!(
        connection.read_response().is_err(),
        "an answer to half a request"
    );
}

fn load(connections: usize, limit: RunLimit, requests: Requests) -> Load {
    Load {
        connections,
        warm_up: Duration::ZERO,
        limit,
        requests,
        on_answer: None,
    }
}

#[test]
fn a_counted_load_sends_exactly_that_many_requests_and_passes_on_every_answer() {
    let server = fake_service(Backend::Sqlite).start();
    let collected = Arc::new(Mutex::new(Vec::new()));
    let request = http::encode(server.addr(), "POST", "/sms", &[JSON], BODY);
    let mut counted = load(16, RunLimit::Count(500), Requests::Fixed(request));
    let sink = Arc::clone(&collected);
    counted.on_answer = Some(Box::new(move |answer| {
        let ids: Vec<String> = serde_json::from_slice(answer.body).expect("JSON");
        sink.lock().expect("no panic before").extend(ids);
    }));
    let report = load::run(server.addr(), counted);
    assert!(
        report.is_clean(16),
        "{:?}",
        (&report.wrong_sample, &report.failure_sample)
    );
    assert_eq!(report.answers(), 500);
    let mut ids = collected.lock().expect("no panic").clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 500, "every answer has a different ID");
}

#[test]
fn wrong_answers_are_counted_and_the_first_is_reported() {
    let server = fake_service(Backend::Sqlite).start();
    let addr = server.addr();
    let half_wrong = Requests::Generated(Box::new(move |number, bytes| {
        let path = if number % 2 == 0 { "/sms" } else { "/nowhere" };
        bytes.extend(http::encode(addr, "POST", path, &[JSON], BODY));
    }));
    let report = load::run(addr, load(4, RunLimit::Count(100), half_wrong));
    assert_eq!((report.answers(), report.wrong), (100, 50));
    assert_eq!(report.wrong_sample.as_deref(), Some("404 "));
}

#[test]
fn a_server_killed_under_load_ends_the_run_with_failures() {
    let mut server = fake_service(Backend::Sqlite).start();
    let addr = server.addr();
    let (answered, first_answer) = std::sync::mpsc::sync_channel(1);
    let request = http::encode(addr, "POST", "/sms", &[JSON], BODY);
    let mut endless = load(
        8,
        RunLimit::Elapsed(Duration::from_mins(10)),
        Requests::Fixed(request),
    );
    endless.on_answer = Some(Box::new(move |_| {
        // Only the first one matters.
        let _full = answered.try_send(());
    }));
    let running = std::thread::spawn(move || load::run(addr, endless));
    first_answer.recv_timeout(TEST_TIMEOUT).expect("an answer");
    server.kill9();
    let report = running.join().expect("the load does not panic");
    assert!(report.answers() > 0);
    assert!(
        report.failed_connections >= 8,
        "{}",
        report.failed_connections
    );
}
