//! `switchboard listen`, alone and as in the README.

use std::process::Command;

use serde_json::Value;
use testkit::http;
use testkit::{Backend, Process};

use super::fixture::{payload, start};
use crate::rest::service::{binary, wait_for};

const README: &str = include_str!("../../../../../README.md");

/// Starts `switchboard listen` on a free port, without its standard error.
fn listen() -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$0" listen --port 0 2>/dev/null"#]);
    command.arg(binary());
    Process::start(command).expect("it listens")
}

/// Waits for a line with this end, and returns it without the time at its start.
fn printed(receiver: &Process, end: &str) -> String {
    wait_for(end, || {
        let output = receiver.output();
        let line = output.lines().find(|line| line.ends_with(end))?;
        let (time, rest) = line.split_once("  ")?;
        let digits = time.bytes().filter(u8::is_ascii_digit).count();
        assert_eq!((time.len(), digits), (8, 6), "a time: {line}");
        Some(rest.to_owned())
    })
}

#[test]
fn requests_are_printed_and_answered_with_ok() {
    let receiver = listen();
    for (method, path, body) in [
        ("POST", "/dlr", r#"{"id":"1","status":1,"error":0}"#),
        ("POST", "/", "plain"),
        ("PUT", "/a/b?c=d", "schön"),
        ("GET", "/look", ""),
    ] {
        let answer = http::request(receiver.addr(), method, path, &[], body.as_bytes());
        let answer = answer.expect(path);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "OK"),
            "{path}"
        );
        let line = format!("{method} {path}  {body}");
        assert_eq!(printed(&receiver, &line), line);
    }
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let receiver = listen();
    let port = receiver.addr().port().to_string();
    let output = Command::new(binary())
        .args(["listen", "--port", &port])
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(stderr.contains(&port), "{stderr}");
}

#[test]
fn it_stops_on_sigterm() {
    let mut receiver = listen();
    let status = receiver.terminate();
    assert!(status.success(), "{status}");
}

/// Runs the command of the README, with the addresses and the token of this test.
#[test]
fn the_readme_shows_a_report() {
    let service = start(Backend::Sqlite);
    let receiver = listen();
    let start = "curl -s http://127.0.0.1:8080/sms";
    let from = README.find(start).expect("the command in the README");
    let (line, _) = README[from..].split_once("\n```").expect("its end");
    let line = line
        .replace("http://127.0.0.1:8080", &service.server.url(""))
        .replace("sb_…", &service.token)
        .replace("127.0.0.1:9000", &receiver.addr().to_string());
    let output = Command::new("sh")
        .args(["-c", &line])
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{line}: {output:?}");
    let ids: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let id = ids[0].as_str().expect("an ID");
    let line = format!("POST /dlr  {}", payload(id, 1, 0));
    assert_eq!(printed(&receiver, &line), line);
    let shown = README.lines().any(|shown| shown.ends_with(&line));
    assert!(
        shown,
        "the README does not show what the first message prints"
    );
}
