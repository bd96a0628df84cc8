//! Refusals: forged forms, members, other accounts, suspended accounts and hostile texts.

use serde_json::json;
use testkit::Backend;
use testkit::receiver::{Receiver, Reply};

use super::{admin, failed_callback, form_token, schedule, send};
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms_with};

on_both_backends!(
    data_of_another_account_is_not_found_and_not_changed,
    a_suspended_account_can_do_nothing,
);

/// The forms that change something or show a secret.
const FORMS: [&str; 26] = [
    "/dashboard/inbox/conversation",
    "/dashboard/opt-outs",
    "/dashboard/opt-outs/remove",
    "/dashboard/opt-outs/import",
    "/dashboard/templates",
    "/dashboard/templates/remove",
    "/dashboard/senders/name",
    "/dashboard/senders/number",
    "/dashboard/senders/1/confirm",
    "/dashboard/senders/1/pin",
    "/dashboard/senders/1/withdraw",
    "/dashboard/numbers",
    "/dashboard/lookups",
    "/dashboard/verify",
    "/dashboard/verify/1",
    "/dashboard/settings/api/new",
    "/dashboard/settings/api/tokens/1",
    "/dashboard/settings/api/tokens/1/edit",
    "/dashboard/settings/api/tokens/1/rotate",
    "/dashboard/settings/api/consent",
    "/dashboard/settings/api/texts",
    "/dashboard/settings/api/secret",
    "/dashboard/settings/api/secret/rotate",
    "/dashboard/scheduled/1",
    "/dashboard/callbacks/replay",
    "/dashboard/callbacks/1/replay",
];

#[test]
fn a_form_without_a_valid_token_does_nothing() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    for path in FORMS {
        for fields in [&[][..], &[("form_token", "0123456789")]] {
            let refused = browser.post(path, fields);
            assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        }
    }
    let mut stranger = Browser::new(&service);
    for path in FORMS {
        let redirect = stranger.post(path, &[]);
        let location = redirect.header("location").unwrap_or_default();
        assert!(
            location.starts_with("/dashboard/sign-in"),
            "{path}: {}",
            redirect.status
        );
    }
}

#[test]
fn a_member_is_refused_the_settings_of_the_api() {
    let service = Service::start(Backend::Sqlite);
    let token = service.create_token("main", &[]);
    let mut member = joined(&service, "ann@example.com", &["--account", "main"]);
    let delete = format!("/dashboard/settings/api/tokens/{}", token.id);
    let (edit, rotate) = (format!("{delete}/edit"), format!("{delete}/rotate"));
    for path in [
        "/dashboard/settings/api",
        "/dashboard/settings/api/new",
        &delete,
        &edit,
        &rotate,
    ] {
        let refused = member.get(path);
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.text().contains("You do not have access"), "{path}");
    }
    let fields = [("name", "mine"), ("route", "sms:send"), ("expires", "")];
    for path in [
        "/dashboard/settings/api/new",
        "/dashboard/settings/api/consent",
        "/dashboard/settings/api/texts",
        "/dashboard/settings/api/secret",
        "/dashboard/settings/api/secret/rotate",
        &delete,
        &edit,
        &rotate,
    ] {
        let refused = send(&mut member, path, &fields);
        assert_eq!(refused.status, 403, "{path}");
        let text = refused.text();
        assert!(!text.contains("whsec_") && !text.contains("sb_"), "{path}");
    }
    let works = service.call_as(&token.token, "GET", "/token", b"");
    assert_eq!(works.status, 200, "nothing was deleted");
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    assert!(!tokens.to_string().contains("mine"), "{tokens}");
}

/// An admin of another account opens each kind of item and tries to change it.
fn data_of_another_account_is_not_found_and_not_changed(backend: Backend) {
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__PARK_AFTER_DAYS", "0")
    });
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(200, "no"))
        .start();
    let callback = failed_callback(&service, &receiver.url("/dlr"));
    let scheduled = schedule(&service, "mine");
    let number = json!({ "name": "+37120000007", "type": "MSISDN" }).to_string();
    let sender = service.call_as(&service.token, "POST", "/senderId", number.as_bytes());
    let request = json!({ "msisdn": "+447700900000", "callBackUrl": receiver.url("/hlr") });
    let lookup = service.call_as(
        &service.token,
        "POST",
        "/hlr",
        request.to_string().as_bytes(),
    );
    let to = json!({ "to": "+37120000007" }).to_string();
    let verified = service.call_as(&service.token, "POST", "/verify", to.as_bytes());
    let token = service.create_token("main", &[]);
    service.create_account("other");
    let more = ["--role", "admin", "--account", "other"];
    let mut other = joined(&service, "eve@example.com", &more);

    let callback_path = format!("/dashboard/callbacks/{}", callback["id"]);
    let scheduled_path = format!("/dashboard/scheduled/{scheduled}");
    let sender_path = format!("/dashboard/senders/{}", sender.text());
    let token_path = format!("/dashboard/settings/api/tokens/{}", token.id);
    let lookup_path = format!("/dashboard/lookups/{}", lookup.json()[0]);
    let verify_path = format!("/dashboard/verify/{}", verified.json()["id"]);
    for path in [
        &callback_path,
        &format!("{callback_path}/live"),
        &scheduled_path,
        &sender_path,
        &token_path,
        &format!("{token_path}/edit"),
        &format!("{token_path}/rotate"),
        &lookup_path,
        &format!("{lookup_path}/live"),
        &verify_path,
    ] {
        let page = other.get(path);
        assert_eq!(page.status, 404, "{path}: {}", page.text());
    }
    for (path, fields) in [
        (format!("{callback_path}/replay"), &[][..]),
        (scheduled_path, &[]),
        (format!("{sender_path}/confirm"), &[("code", "12345")]),
        (format!("{sender_path}/pin"), &[]),
        (format!("{sender_path}/withdraw"), &[("sure", "yes")]),
        (
            format!("{token_path}/edit"),
            &[("name", "theirs"), ("route", "sms:send"), ("expires", "")],
        ),
        (format!("{token_path}/rotate"), &[("grace", "0")]),
        (token_path, &[]),
        (verify_path, &[("code", "123456")]),
    ] {
        let page = send(&mut other, &path, fields);
        assert_eq!(page.status, 404, "{path}: {}", page.text());
    }
    let fields = [("url", receiver.url(""))];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let replayed = send(&mut other, "/dashboard/callbacks/replay", &fields);
    assert!(
        replayed.text().contains("None was sent again"),
        "{}",
        replayed.text()
    );

    assert_eq!(service.scheduled_as(&service.token).len(), 1);
    let works = service.call_as(&token.token, "GET", "/token", b"");
    assert_eq!(works.status, 200, "the token is still valid");
    let id = callback["id"].to_string();
    let tries = service
        .server
        .cli_json(&["callbacks", "show", &id, "--json"]);
    assert_eq!(
        tries.as_array().map(Vec::len),
        Some(1),
        "not tried again: {tries}"
    );
    for list in [
        "callbacks?state=all",
        "scheduled",
        "senders",
        "lookups",
        "verify",
        "settings/api",
    ] {
        let page = other.get(&format!("/dashboard/{list}"));
        assert_eq!(page.status, 200, "{list}");
        let text = page.text();
        for mine in ["37120000007", "447700900000<", "/dlr", ">mine<"] {
            assert!(!text.contains(mine), "{mine} in {list}: {text}");
        }
    }
}

/// Tokens of a suspended account are refused by the API. People stay signed in, so each action must refuse them.
fn a_suspended_account_can_do_nothing(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let suspended = service.server.cli(&["account", "suspend", "main"]);
    assert!(suspended.status.success(), "{suspended:?}");
    for (path, fields) in [
        (
            "/dashboard/lookups",
            &[("msisdn", "+447700900000"), ("key", "k")][..],
        ),
        ("/dashboard/senders/number", &[("name", "+37120000007")]),
        ("/dashboard/verify", &[("to", "+37120000007"), ("key", "k")]),
        (
            "/dashboard/senders/name",
            &[
                ("name", "Acme"),
                ("category", "Brand"),
                ("categoryDescription", "ours"),
            ],
        ),
    ] {
        let refused = send(&mut browser, path, fields);
        assert_eq!(refused.status, 422, "{path}: {}", refused.text());
        assert!(
            refused.text().contains("suspended"),
            "{path}: {}",
            refused.text()
        );
    }
    let list = service.server.cli_json(&["sender", "list", "--json"]);
    assert_eq!(list, json!([]));
}

#[test]
fn texts_from_outside_are_escaped() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x>";
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__PARK_AFTER_DAYS", "0")
    });
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(200, HOSTILE))
        .start();
    let callback = failed_callback(&service, &receiver.url("/dlr?x=<script>"));
    let scheduled = schedule(&service, HOSTILE);
    service.create_token("main", &["--name", HOSTILE]);
    service.accept(&sms_with(&json!({ "message": HOSTILE })));
    let mut browser = admin(&service);
    let token = form_token(&mut browser);
    let refused = browser.post(
        "/dashboard/senders/name",
        &[
            ("form_token", &token),
            ("name", HOSTILE),
            ("categoryDescription", HOSTILE),
        ],
    );
    assert_eq!(refused.status, 422);
    let mut pages = vec![refused.text()];
    let numbers = [("form_token", token.as_str()), ("numbers", HOSTILE)];
    pages.push(browser.post("/dashboard/numbers", &numbers).text());
    for path in [
        format!("/dashboard/callbacks/{}", callback["id"]),
        "/dashboard/callbacks?url=%3Cscript%3E".to_owned(),
        "/dashboard/callbacks".to_owned(),
        "/dashboard/scheduled".to_owned(),
        format!("/dashboard/scheduled/{scheduled}"),
        "/dashboard/settings/api".to_owned(),
        "/dashboard/rates?q=%22%3E%3Cscript%3E".to_owned(),
        "/dashboard/lookups?msisdn=%22%3E%3Cscript%3E".to_owned(),
    ] {
        pages.push(browser.get(&path).text());
    }
    for page in &pages {
        assert!(page.contains("&#60;script&#62;"), "shown as text: {page}");
        for raw in ["<script>", "<img src=x"] {
            assert!(!page.contains(raw), "{raw}: {page}");
        }
    }
}
