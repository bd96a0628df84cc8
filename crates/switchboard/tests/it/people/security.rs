//! A person's own security settings: password, second factor, sessions.

use domain::Clock as _;
use domain::person::TotpSecret;
use engine::clock::SystemClock;
use testkit::Backend;
use testkit::http::Response;

use super::{Browser, PASSWORD, invite, joined, on_both_backends, path};
use crate::rest::service::Service;

on_both_backends!(
    a_second_factor_is_asked_for_until_it_is_turned_off,
    each_recovery_code_works_once,
    wrong_codes_end_a_pending_sign_in,
    wrong_codes_lock_for_longer_and_longer,
    sessions_are_listed_and_ended_from_another_browser,
    a_new_password_asks_for_the_old_one,
    a_link_for_a_new_password_still_asks_for_the_second_factor,
);

const SECURITY: &str = "/dashboard/settings/security";
const FACTOR: &str = "/dashboard/settings/security/second-factor";
const SESSIONS: &str = "/dashboard/settings/security/sessions";
const CODE: &str = "/dashboard/sign-in/code";
const OTHER_PASSWORD: &str = "purple tram eleven";

/// Sends these fields to `action`, with the form token of the last page.
pub(super) fn send(browser: &mut Browser, action: &str, fields: &[(&str, &str)]) -> Response {
    let token = browser.token();
    let mut all = vec![("form_token", token.as_str())];
    all.extend(fields);
    browser.post(action, &all)
}

/// Submits the email address and the password.
pub(crate) fn sign_in(browser: &mut Browser, email: &str, password: &str) -> Response {
    browser.get("/dashboard/sign-in");
    browser.submit(&[("email", email), ("password", password)])
}

/// The secret that a page shows, as a device would read it.
pub(crate) fn secret(page: &str) -> TotpSecret {
    let (_, rest) = page.split_once("id=\"factor-key\">").expect("a key");
    let letters = rest.split('<').next().expect("its end");
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in letters.bytes().filter(|b| *b != b' ') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            other => panic!("no letter of base 32: {other}"),
        };
        bits = (bits << 5) | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("a byte"));
        }
    }
    TotpSecret::new(bytes.try_into().expect("twenty bytes"))
}

/// The recovery codes that a page shows.
fn recovery_codes(page: &str) -> Vec<String> {
    let (_, rest) = page.split_once("id=\"codes\"").expect("codes");
    let (_, rest) = rest.split_once("<code>").expect("a block of them");
    let codes = rest.split("</code>").next().expect("its end");
    codes.lines().map(str::to_owned).collect()
}

/// Turns the second factor on, which uses up the current code.
fn turn_on(browser: &mut Browser) -> (TotpSecret, Vec<String>) {
    browser.get(SECURITY);
    let mut page = send(browser, FACTOR, &[("action", "offer")]);
    assert_eq!(page.status, 200, "{}", page.text());
    let secret = secret(&page.text());
    let code = secret.code(SystemClock.now());
    for (name, password, expected) in [("wrong", OTHER_PASSWORD, 422), ("right", PASSWORD, 200)] {
        let fields = [
            ("action", "enable"),
            ("code", &*code),
            ("password", password),
        ];
        page = send(browser, FACTOR, &fields);
        assert_eq!(page.status, expected, "{name}: {}", page.text());
    }
    let codes = recovery_codes(&page.text());
    assert_eq!(codes.len(), 10);
    (secret, codes)
}

/// A code that was not used yet: the one of the next time step, which is already accepted.
fn next_code(secret: &TotpSecret) -> String {
    secret.code(SystemClock.now() + jiff::SignedDuration::from_secs(30))
}

fn a_second_factor_is_asked_for_until_it_is_turned_off(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    ann.get(SECURITY);
    let page = send(&mut ann, FACTOR, &[("action", "offer")]);
    assert!(page.text().contains("otpauth://totp/"), "{}", page.text());
    let page = send(
        &mut ann,
        FACTOR,
        &[
            ("action", "enable"),
            ("code", "000000x"),
            ("password", PASSWORD),
        ],
    );
    assert_eq!(page.status, 422, "{}", page.text());
    let mut other = Browser::new(&service);
    let entered = sign_in(&mut other, "ann@example.com", PASSWORD);
    assert_eq!(entered.header("location"), Some("/dashboard"), "not on yet");

    let (secret, codes) = turn_on(&mut ann);
    let page = ann.get(SECURITY).text();
    assert!(page.contains("10 of your recovery codes"), "{page}");
    assert!(!page.contains(&codes[0]), "codes are shown once");
    assert!(!page.contains(&secret.in_letters()), "so is the key");

    let mut browser = Browser::new(&service);
    browser.get("/dashboard/settings/security");
    let page = browser.get("/dashboard/sign-in?next=/dashboard/settings/security");
    assert_eq!(page.status, 200);
    let pending = browser.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
    assert_eq!(
        pending.header("location"),
        Some("/dashboard/sign-in/code?next=/dashboard/settings/security")
    );
    assert_eq!(browser.cookie("switchboard"), None, "no session yet");
    assert_eq!(browser.get("/dashboard").status, 303, "and no access");
    browser.follow(&pending);
    let typed = next_code(&secret);
    let entered = browser.submit(&[("code", &typed)]);
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, Some(SECURITY)),
        "{}",
        entered.text()
    );
    assert_eq!(browser.get(SECURITY).status, 200);
    assert_eq!(browser.cookie("switchboard-half"), None);

    let mut again = Browser::new(&service);
    let pending = sign_in(&mut again, "ann@example.com", PASSWORD);
    again.follow(&pending);
    let replayed = again.submit(&[("code", &typed)]);
    assert_eq!(replayed.status, 401, "a code works once");
    assert_eq!(again.cookie("switchboard"), None);

    ann.get(SECURITY);
    let wrong = [("action", "disable"), ("password", OTHER_PASSWORD)];
    assert_eq!(send(&mut ann, FACTOR, &wrong).status, 422);
    let right = [("action", "disable"), ("password", PASSWORD)];
    let off = send(&mut ann, FACTOR, &right);
    assert!(
        off.text().contains("The second factor is off."),
        "{}",
        off.text()
    );
    let entered = sign_in(&mut Browser::new(&service), "ann@example.com", PASSWORD);
    assert_eq!(entered.header("location"), Some("/dashboard"));
}

fn each_recovery_code_works_once(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let (_, codes) = turn_on(&mut ann);
    let enter = |code: &str| {
        let mut browser = Browser::new(&service);
        let pending = sign_in(&mut browser, "ann@example.com", PASSWORD);
        browser.follow(&pending);
        browser.submit(&[("code", code)]).status
    };
    assert_eq!(enter(&codes[0]), 303);
    assert_eq!(enter(&codes[0]), 401, "once");
    assert_eq!(enter(&codes[1].to_uppercase().replace('-', " ")), 303);
    assert!(
        ann.get(SECURITY)
            .text()
            .contains("8 of your recovery codes")
    );
    let page = send(
        &mut ann,
        FACTOR,
        &[("action", "codes"), ("password", PASSWORD)],
    );
    let new = recovery_codes(&page.text());
    assert_eq!(enter(&codes[2]), 401, "the old ones are gone");
    assert_eq!(enter(&new[2]), 303);
}

fn wrong_codes_end_a_pending_sign_in(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let (secret, _) = turn_on(&mut ann);
    let mut browser = Browser::new(&service);
    let pending = sign_in(&mut browser, "ann@example.com", PASSWORD);
    browser.follow(&pending);
    for n in 0..5 {
        assert_eq!(
            browser.submit(&[("code", "12345")]).status,
            401,
            "attempt {n}"
        );
    }
    let late = browser.submit(&[("code", &next_code(&secret))]);
    assert_eq!(
        (late.status, late.header("location")),
        (303, Some("/dashboard/sign-in")),
        "even the right one comes too late"
    );
    assert_eq!(browser.get("/dashboard").status, 303);
    let mut stranger = Browser::new(&service);
    assert_eq!(stranger.get(CODE).status, 303, "no sign-in is pending");
    stranger.get("/dashboard/sign-in");
    let sent = stranger.post(CODE, &[("code", "123456")]);
    assert_eq!(sent.status, 403, "without a form token");
}

/// A browser in which Ann has entered her password, but not her code.
fn pending_sign_in<'a>(service: &'a Service, address: &str) -> Browser<'a> {
    let mut browser = Browser::new(service);
    browser.set_header("X-Forwarded-For", address);
    let pending = sign_in(&mut browser, "ann@example.com", PASSWORD);
    browser.follow(&pending);
    browser
}

/// Each new sign-in allows five more attempts, so wrong codes are counted for each person.
fn wrong_codes_lock_for_longer_and_longer(backend: Backend) {
    let mut service = Service::with(backend, |server| {
        server.config("[auth]\ntrusted_proxies = [\"127.0.0.0/8\"]")
    });
    let mut ann = joined(&service, "ann@example.com", &[]);
    turn_on(&mut ann);
    for address in ["198.51.100.1", "198.51.100.2"] {
        let mut browser = pending_sign_in(&service, address);
        for n in 0..5 {
            let refused = browser.submit(&[("code", "12345")]);
            assert_eq!(refused.status, 401, "{address}, attempt {n}");
        }
    }
    // Further attempts have to wait for a minute, then two, then four, so five more are not possible in this time.
    let is_stopped = |service: &Service, address: &str| {
        let mut browser = pending_sign_in(service, address);
        (0..5).any(|_| {
            let refused = browser.submit(&[("code", "12345")]);
            assert!([401, 429].contains(&refused.status), "{}", refused.status);
            refused.status == 429 && refused.header("retry-after").is_some()
        })
    };
    assert!(is_stopped(&service, "198.51.100.3"));
    service.server.restart();
    assert!(
        is_stopped(&service, "198.51.100.4"),
        "a restart does not reset the count"
    );
}

fn sessions_are_listed_and_ended_from_another_browser(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let mut phone = Browser::new(&service);
    let agent = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0";
    phone.set_header("User-Agent", agent);
    sign_in(&mut phone, "ann@example.com", PASSWORD);
    let mut bob = joined(&service, "bob@example.com", &[]);

    let page = ann.get(SECURITY).text();
    assert_eq!(page.matches("name=\"session\"").count(), 2, "{page}");
    assert_eq!(page.matches("this one").count(), 1, "{page}");
    assert!(page.contains("127.0.0.1"), "{page}");
    let (before, _) = page.split_once("Firefox on Android").expect("the phone");
    let row = &page[before.len()..];
    let (_, name) = row
        .split_once("name=\"session\" value=\"")
        .expect("its name");
    let name = name.split('"').next().expect("its end").to_owned();

    bob.get(SECURITY);
    let refused = send(&mut bob, SESSIONS, &[("session", &name)]);
    assert!(
        refused.text().contains("already ended"),
        "{}",
        refused.text()
    );
    assert_eq!(phone.get("/dashboard").status, 200, "Bob cannot end it");
    let ended = send(&mut ann, SESSIONS, &[("session", &name), ("sure", "yes")]);
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert_eq!(
        phone.get("/dashboard").status,
        303,
        "the phone is signed out"
    );
    assert_eq!(ann.get("/dashboard").status, 200);

    sign_in(&mut phone, "ann@example.com", PASSWORD);
    ann.get(SECURITY);
    let out = send(&mut ann, SESSIONS, &[("action", "all"), ("sure", "yes")]);
    assert_eq!(out.header("location"), Some("/dashboard/sign-in"));
    assert_eq!(phone.get("/dashboard").status, 303, "signed out everywhere");
    assert_eq!(bob.get("/dashboard").status, 200);
}

fn a_new_password_asks_for_the_old_one(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let mut phone = Browser::new(&service);
    sign_in(&mut phone, "ann@example.com", PASSWORD);
    let change = "/dashboard/settings/security/password";
    ann.get(SECURITY);
    for (name, old, new, repeated, problem) in [
        (
            "wrong",
            OTHER_PASSWORD,
            OTHER_PASSWORD,
            OTHER_PASSWORD,
            "This is not your password.",
        ),
        ("short", PASSWORD, "short", "short", "shorter than 12"),
        (
            "different",
            PASSWORD,
            OTHER_PASSWORD,
            PASSWORD,
            "do not match",
        ),
    ] {
        let fields = [("old", old), ("password", new), ("repeated", repeated)];
        let page = send(&mut ann, change, &fields);
        assert_eq!(page.status, 422, "{name}: {}", page.text());
        assert!(page.text().contains(problem), "{name}: {}", page.text());
    }
    assert_eq!(phone.get("/dashboard").status, 200);
    let fields = [
        ("old", PASSWORD),
        ("password", OTHER_PASSWORD),
        ("repeated", OTHER_PASSWORD),
    ];
    let page = send(&mut ann, change, &fields);
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(ann.get("/dashboard").status, 200, "this session stays");
    assert_eq!(phone.get("/dashboard").status, 303, "the others have ended");
    assert_eq!(sign_in(&mut phone, "ann@example.com", PASSWORD).status, 401);
    assert_eq!(
        sign_in(&mut phone, "ann@example.com", OTHER_PASSWORD).status,
        303
    );
}

fn a_link_for_a_new_password_still_asks_for_the_second_factor(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let (secret, _) = turn_on(&mut ann);
    let link = path(&invite(&service, "ann@example.com", &[]));
    let mut browser = Browser::new(&service);
    browser.get(&link);
    let pending = browser.submit(&[("password", OTHER_PASSWORD), ("repeated", OTHER_PASSWORD)]);
    assert_eq!(pending.header("location"), Some(CODE), "{}", pending.text());
    assert_eq!(browser.cookie("switchboard"), None);
    assert_eq!(
        ann.get("/dashboard").status,
        303,
        "the old session has ended"
    );
    browser.follow(&pending);
    let entered = browser.submit(&[("code", &next_code(&secret))]);
    assert_eq!(entered.header("location"), Some("/dashboard"));
    assert_eq!(browser.get("/dashboard").status, 200);
}

#[test]
fn a_second_factor_can_be_required() {
    let config = "[auth]\nsecond_factor = \"operators\"\n";
    let service = Service::with(Backend::Sqlite, |builder| builder.config(config));
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    assert_eq!(ann.get("/dashboard").status, 200, "no operator");
    let mut operator = joined(&service, "op@example.com", &["--role", "operator"]);
    let accounts = "/dashboard/operator/accounts";
    for path in [accounts, "/dashboard/send", "/dashboard/accounts"] {
        let away = operator.get(path);
        assert_eq!(away.header("location"), Some(SECURITY), "{path}");
    }
    let page = operator.get(SECURITY).text();
    assert!(page.contains("requires a second factor"), "{page}");
    turn_on(&mut operator);
    assert_eq!(operator.get(accounts).status, 200);
}
