//! The first start: the commands and the one-time link that it prints, and the dashboard.

use std::process::Command;

use domain::Timestamp;
use serde_json::Value;
use testkit::http::Response;
use testkit::{Backend, Process, temp_dir};

use super::service::{Service, binary, in_seconds, wait_for};
use crate::people::browser::Browser;

/// Runs a printed line in a shell.
fn run_in_shell(line: &str) -> Value {
    let output = Command::new("sh")
        .args(["-c", line])
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
}

/// The printed `curl` commands, each with the lines that continue it.
fn printed_commands(output: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in output.lines() {
        match commands.last_mut() {
            Some(command) if is_continued => *command = format!("{command}\n{line}"),
            _ if line.trim().starts_with("curl ") => commands.push(line.to_owned()),
            _ => continue,
        }
        is_continued = line.ends_with('\\');
    }
    commands
}

/// It fits on a screen of 24 lines and 80 columns, it tells the next three steps, and no log line is in it.
#[test]
fn the_welcome_fits_on_a_screen() {
    let folder = temp_dir("home").expect("a temporary folder");
    let mut command = Command::new("sh");
    // Both outputs go to one pipe, as on a terminal. The port is replaced below.
    command
        .args(["-c", "exec \"$0\" serve --listen 127.0.0.1:0 2>&1"])
        .arg(binary())
        .env("SWITCHBOARD_LOG__LEVEL", "trace")
        .current_dir(folder.path());
    let process = Process::start(command).expect("it starts");
    let text = wait_for("the welcome", || {
        let output = process.output();
        let (_, text) = output.split_once("\nSwitchboard ")?;
        let (text, _) = text.split_once("data/service.key\n\n")?;
        Some(format!("Switchboard {text}data/service.key"))
    });
    let text = text.replace(&format!(":{}", process.addr().port()), ":8080");
    // The prompt, or the next log line, is on the last line of the screen.
    assert!(text.lines().count() < 24, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.starts_with('{'), "a log line: {line}");
    }
    for step in [
        "\n1. Open the dashboard",
        "\n2. Send a message",
        "\n3. Connect a carrier",
    ] {
        assert!(text.contains(step), "{step}: {text}");
    }
}

/// The lines work when pasted, and only the first start prints them.
fn the_printed_lines_work(backend: Backend) {
    let mut service = Service::start(backend);
    let output = service.server.output();
    let commands = printed_commands(&output);
    let [send, read] = &commands[..] else {
        panic!("{output}");
    };
    assert!(
        output.contains("The API token is valid for a week:"),
        "{output}"
    );
    assert!(
        output.contains("switchboard token create --account main"),
        "{output}"
    );
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    let expires = tokens[0]["expires"].as_str().expect("it expires");
    let expires: Timestamp = expires.parse().expect("a time");
    let (soonest, latest) = (in_seconds(6 * 86_400), in_seconds(7 * 86_400 + 1));
    assert!(soonest < expires && expires < latest, "{expires}");
    let answer = run_in_shell(send);
    let id = answer[0].as_str().expect("one ID");
    let read = read.replace("/ID", &format!("/{id}"));
    wait_for("the delivery", || {
        let status = run_in_shell(&read);
        assert_eq!(status["id"].as_str(), Some(id));
        (status["state"] == "delivered").then_some(())
    });

    service.server.restart();
    let output = service.server.output();
    assert!(
        output.contains("listening on http://127.0.0.1:"),
        "{output}"
    );
    for secret in ["sb_", "sign-in", "curl", "first start"] {
        assert!(!output.contains(secret), "{secret} again: {output}");
    }
    assert_eq!(
        service.get("/token").status,
        200,
        "the token is still valid"
    );
    assert_eq!(
        service.get(&format!("/sms/status/{id}")).status,
        200,
        "the message is still stored"
    );
}

/// The path of the one-time link.
fn link(service: &Service) -> String {
    let output = service.server.output();
    let (_, rest) = output.split_once("/dashboard/sign-in/").expect("a link");
    format!(
        "/dashboard/sign-in/{}",
        rest.lines().next().expect("a line")
    )
}

/// A page is HTML that no other site can frame. The only script is the dashboard's own, after sign-in.
fn check_page(case: &str, page: &Response) {
    let html = page
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/html"));
    assert!(html, "{case}: {:?}", page.headers);
    let policy = page.header("content-security-policy").expect(case);
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{case}: {policy}"
    );
    let scripts = policy.split("; ").find(|rule| rule.contains("script-src"));
    let expected = (case == "signed in").then_some("script-src 'self'");
    assert_eq!(scripts, expected, "{case}: {policy}");
    assert_eq!(
        page.header("x-content-type-options"),
        Some("nosniff"),
        "{case}"
    );
    assert_eq!(
        page.header("referrer-policy"),
        Some("no-referrer"),
        "{case}"
    );
    assert_eq!(page.header("cache-control"), Some("no-store"), "{case}");
}

/// Opening the link does not use it up; signing in does.
fn the_link_signs_in_once(backend: Backend) {
    let service = Service::start(backend);
    let link = link(&service);
    let mut browser = Browser::new(&service);
    for view in ["first", "second"] {
        let page = browser.get(&link);
        check_page(view, &page);
        assert_eq!((page.status, browser.cookie("switchboard")), (200, None));
    }
    let without_form = service.raw("POST", &link, &[], b"");
    check_page("not the form of this browser", &without_form);
    assert_eq!(
        (without_form.status, without_form.header("set-cookie")),
        (403, None)
    );
    let signed_in = browser.submit(&[]);
    assert_eq!(
        (signed_in.status, signed_in.header("location")),
        (303, Some("/dashboard"))
    );
    let cookie = signed_in.header("set-cookie").expect("a session");
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age="] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }

    for (case, path) in [
        ("again", link.as_str()),
        ("unknown", "/dashboard/sign-in/nonsense"),
    ] {
        let mut other = Browser::new(&service);
        let refused = other.get(path);
        check_page(case, &refused);
        assert_eq!(refused.status, 404, "{case}");
        assert_eq!(other.cookie("switchboard"), None, "{case}");
    }
}

/// A browser in which the link was used.
fn signed_in(service: &Service) -> Browser<'_> {
    let mut browser = Browser::new(service);
    browser.get(&link(service));
    let entered = browser.submit(&[]);
    assert_eq!(entered.status, 303, "{}", entered.text());
    browser
}

/// The dashboard opens only with the session, and signing out ends it.
fn the_session_opens_the_dashboard_until_it_ends(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = signed_in(&service);
    browser.set_cookie("theme", "dark");
    let page = browser.get("/dashboard");
    check_page("signed in", &page);
    assert_eq!(page.status, 200);
    assert!(
        page.text().contains("main") && page.text().contains("100.00 EUR"),
        "{}",
        page.text()
    );
    assert!(
        !page.text().contains(&service.token),
        "a token is never shown again"
    );
    let dashboard = |cookie: &str| service.raw("GET", "/dashboard", &[("Cookie", cookie)], b"");
    for (case, cookie) in [
        ("no session", ""),
        ("a wrong session", "switchboard=nonsense"),
        ("another name", "sb=x"),
    ] {
        let redirect = dashboard(cookie);
        let to = redirect.header("location");
        assert_eq!(
            (redirect.status, to),
            (303, Some("/dashboard/sign-in")),
            "{case}"
        );
    }

    let session = browser.cookie("switchboard").expect("a session").to_owned();
    let session = format!("switchboard={session}");
    let get = service.raw("GET", "/dashboard/sign-out", &[("Cookie", &session)], b"");
    assert_eq!(get.status, 405, "a link cannot sign anybody out");
    let signed_out = browser.sign_out();
    assert_eq!(
        (signed_out.status, signed_out.header("location")),
        (303, Some("/dashboard/sign-in"))
    );
    let cleared = signed_out.header("set-cookie").expect("cleared");
    assert!(
        cleared.starts_with("switchboard=;") && cleared.contains("Max-Age=0"),
        "{cleared}"
    );
    assert_eq!(
        dashboard(&session).status,
        303,
        "the session has ended, even for its old cookie"
    );
}

on_both_backends!(
    the_printed_lines_work,
    the_link_signs_in_once,
    the_session_opens_the_dashboard_until_it_ends
);

#[test]
fn sessions_and_tokens_are_not_interchangeable() {
    let service = Service::start(Backend::Sqlite);
    let browser = signed_in(&service);
    let session = browser.cookie("switchboard").expect("a session");
    assert_eq!(service.call_as(session, "GET", "/token", b"").status, 401);
    let mut browser = Browser::new(&service);
    browser.set_cookie("switchboard", &service.token);
    assert_eq!(browser.get("/dashboard").status, 303);
}
