//! How admins and operators manage people, and the audit log of that.

use testkit::Backend;
use testkit::http::Response;

use super::security::{send, sign_in};
use super::{Browser, PASSWORD, joined, on_both_backends};
use crate::rest::service::Service;

on_both_backends!(
    an_admin_manages_only_the_people_of_one_account,
    an_admin_cannot_change_anybody_else,
    an_operator_manages_everybody_but_the_last_operator_stays,
    each_page_checks_the_role,
    the_audit_log_is_shown_to_those_who_may_see_it,
);

const PEOPLE: &str = "/dashboard/settings/people";
const ALL_PEOPLE: &str = "/dashboard/operator/people";
const OTHER_PASSWORD: &str = "purple tram eleven";

/// A service with two accounts.
fn start(backend: Backend) -> Service {
    let service = Service::start(backend);
    service
        .server
        .cli(&["account", "create", "--name", "other"]);
    service
}

fn person<'a>(service: &'a Service, email: &str, role: &str, account: &str) -> Browser<'a> {
    joined(service, email, &["--role", role, "--account", account])
}

/// The ID of a person in a list.
pub(super) fn id(page: &str, email: &str) -> String {
    let (_, row) = page
        .split_once(&format!("aria-label=\"Change {email}\""))
        .unwrap_or_else(|| panic!("{email} cannot be changed: {page}"));
    let (_, id) = row.split_once("name=\"person\" value=\"").expect("an ID");
    id.split('"').next().expect("its end").to_owned()
}

/// The path of the link that a page shows.
pub(super) fn link(page: &Response) -> String {
    let text = page.text();
    let (_, rest) = text
        .split_once("/dashboard/invitation/")
        .unwrap_or_else(|| panic!("no link: {text}"));
    let secret = rest.split('<').next().expect("its end");
    format!("/dashboard/invitation/{secret}")
}

pub(super) fn accept(service: &Service, link: &str, password: &str) -> u16 {
    let mut browser = Browser::new(service);
    if browser.get(link).status != 200 {
        return 404;
    }
    let fields = [("password", password), ("repeated", password)];
    browser.submit(&fields).status
}

fn an_admin_manages_only_the_people_of_one_account(backend: Backend) {
    let service = start(backend);
    let mut admin = person(&service, "admin@example.com", "admin", "main");
    person(&service, "ann@example.com", "member", "main");
    person(&service, "zoe@example.com", "member", "other");
    person(&service, "op@example.com", "operator", "main");
    let page = admin.get(PEOPLE).text();
    assert!(page.contains("ann@example.com"), "{page}");
    assert!(!page.contains("zoe@example.com"), "{page}");
    let ann = id(&page, "ann@example.com");
    assert!(page.contains("op@example.com"), "{page}");
    assert!(!page.contains("Change op@example.com"), "{page}");

    let invite = [
        ("action", "invite"),
        ("email", "new@example.com"),
        ("role", "member"),
    ];
    let shown = send(&mut admin, PEOPLE, &invite);
    assert_eq!(shown.status, 200, "{}", shown.text());
    let withdrawn = [
        ("action", "withdraw"),
        ("email", "new@example.com"),
        ("sure", "yes"),
    ];
    assert_eq!(send(&mut admin, PEOPLE, &withdrawn).status, 200);
    assert_eq!(accept(&service, &link(&shown), PASSWORD), 404, "withdrawn");
    let shown = send(&mut admin, PEOPLE, &invite);
    assert_eq!(accept(&service, &link(&shown), PASSWORD), 303);

    for (name, fields, problem) in [
        (
            "an operator by invitation",
            [
                ("action", "invite"),
                ("email", "x@example.com"),
                ("role", "operator"),
            ],
            "Only an operator can make operators.",
        ),
        (
            "an operator by role",
            [
                ("action", "role"),
                ("person", ann.as_str()),
                ("role", "operator"),
            ],
            "Only an operator can make operators.",
        ),
        (
            "a person who can sign in already",
            [
                ("action", "invite"),
                ("email", "ann@example.com"),
                ("role", "member"),
            ],
            "can sign in already",
        ),
        (
            "an invalid email address",
            [
                ("action", "invite"),
                ("email", "<b>x</b>"),
                ("role", "member"),
            ],
            "value=\"&#60;b&#62;x&#60;/b&#62;\"",
        ),
    ] {
        let refused = send(&mut admin, PEOPLE, &fields);
        assert_eq!(refused.status, 422, "{name}: {}", refused.text());
        assert!(
            refused.text().contains(problem),
            "{name}: {}",
            refused.text()
        );
    }
}

fn an_admin_cannot_change_anybody_else(backend: Backend) {
    let service = start(backend);
    let mut admin = person(&service, "admin@example.com", "admin", "main");
    let mut member = person(&service, "ann@example.com", "member", "main");
    let mut stranger = person(&service, "zoe@example.com", "member", "other");
    let mut operator = person(&service, "op@example.com", "operator", "main");
    let ann = id(&admin.get(PEOPLE).text(), "ann@example.com");
    // The IDs of others are small numbers, so they can be guessed.
    let all = operator.get(ALL_PEOPLE).text();
    for email in ["zoe@example.com", "op@example.com"] {
        let other = id(&all, email);
        for (action, status) in [
            ("remove", 422),
            ("reset", 422),
            ("role", 422),
            ("remove-second-factor", 403),
        ] {
            admin.get(PEOPLE);
            let fields = [
                ("action", action),
                ("person", other.as_str()),
                ("role", "member"),
                ("sure", "yes"),
            ];
            let refused = send(&mut admin, PEOPLE, &fields);
            assert_eq!(
                refused.status,
                status,
                "{action} {email}: {}",
                refused.text()
            );
        }
    }
    assert_eq!(stranger.get("/dashboard").status, 200, "of another account");
    assert_eq!(operator.get(ALL_PEOPLE).status, 200, "an operator still");

    admin.get(PEOPLE);
    let promoted = [
        ("action", "role"),
        ("person", ann.as_str()),
        ("role", "admin"),
    ];
    assert_eq!(send(&mut admin, PEOPLE, &promoted).status, 200);
    assert_eq!(member.get(PEOPLE).status, 200, "another admin");
    let removed = [
        ("action", "remove"),
        ("person", ann.as_str()),
        ("sure", "yes"),
    ];
    assert_eq!(send(&mut admin, PEOPLE, &removed).status, 200);
    assert_eq!(member.get("/dashboard").status, 303, "signed out at once");
    assert_eq!(
        sign_in(&mut member, "ann@example.com", PASSWORD).status,
        401
    );
}

fn an_operator_manages_everybody_but_the_last_operator_stays(backend: Backend) {
    let service = start(backend);
    let mut operator = person(&service, "op@example.com", "operator", "main");
    let mut ann = person(&service, "ann@example.com", "member", "main");
    let page = operator.get(ALL_PEOPLE).text();
    let (op_id, ann_id) = (id(&page, "op@example.com"), id(&page, "ann@example.com"));
    let me = op_id.as_str();

    for fields in [
        vec![("action", "remove"), ("person", me), ("sure", "yes")],
        vec![
            ("action", "role"),
            ("person", me),
            ("role", "admin"),
            ("account", "main"),
        ],
    ] {
        let refused = send(&mut operator, ALL_PEOPLE, &fields);
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(
            refused.text().contains("the last operator"),
            "{}",
            refused.text()
        );
    }
    let moved = [
        ("action", "role"),
        ("person", ann_id.as_str()),
        ("role", "admin"),
        ("account", "other"),
    ];
    assert_eq!(send(&mut operator, ALL_PEOPLE, &moved).status, 200);
    let page = ann.get("/dashboard").text();
    assert!(page.contains("other"), "{page}");
    assert_eq!(ann.get(PEOPLE).status, 200, "she is an admin now");

    let reset = [("action", "reset"), ("person", ann_id.as_str())];
    let shown = send(&mut operator, ALL_PEOPLE, &reset);
    assert_eq!(ann.get("/dashboard").status, 200, "not signed out yet");
    assert_eq!(accept(&service, &link(&shown), OTHER_PASSWORD), 303);
    assert_eq!(
        ann.get("/dashboard").status,
        303,
        "signed out by the new password"
    );
    assert_eq!(
        sign_in(&mut ann, "ann@example.com", OTHER_PASSWORD).status,
        303
    );

    let promoted = [
        ("action", "role"),
        ("person", ann_id.as_str()),
        ("role", "operator"),
        ("account", ""),
    ];
    operator.get(ALL_PEOPLE);
    assert_eq!(send(&mut operator, ALL_PEOPLE, &promoted).status, 200);
    let removed = send(
        &mut operator,
        ALL_PEOPLE,
        &[("action", "remove"), ("person", me), ("sure", "yes")],
    );
    assert_eq!(
        removed.status,
        200,
        "now there is another: {}",
        removed.text()
    );
    assert_eq!(
        operator.get(ALL_PEOPLE).status,
        303,
        "a removed person is signed out"
    );
    assert_eq!(ann.get(ALL_PEOPLE).status, 200);
}

fn each_page_checks_the_role(backend: Backend) {
    let service = start(backend);
    let mut operator = person(&service, "op@example.com", "operator", "main");
    let mut admin = person(&service, "admin@example.com", "admin", "main");
    let mut member = person(&service, "ann@example.com", "member", "main");
    let mut signed_out = Browser::new(&service);
    for (path, expected) in [
        ("/dashboard/settings/security", [200, 200, 200, 303]),
        (PEOPLE, [200, 200, 403, 303]),
        ("/dashboard/settings/audit", [200, 200, 403, 303]),
        (ALL_PEOPLE, [200, 403, 403, 303]),
        ("/dashboard/operator/audit", [200, 403, 403, 303]),
    ] {
        let statuses = [&mut operator, &mut admin, &mut member, &mut signed_out]
            .map(|browser| browser.get(path).status);
        assert_eq!(statuses, expected, "{path}");
    }
    for path in [PEOPLE, ALL_PEOPLE] {
        member.get("/dashboard/settings/security");
        let fields = [
            ("action", "invite"),
            ("email", "x@example.com"),
            ("role", "member"),
        ];
        assert_eq!(send(&mut member, path, &fields).status, 403, "{path}");
        admin.get("/dashboard/settings/security");
        let without_token = admin.post(path, &fields);
        assert_eq!(without_token.status, 403, "{path}: without a form token");
    }
}

fn the_audit_log_is_shown_to_those_who_may_see_it(backend: Backend) {
    let service = start(backend);
    let mut operator = person(&service, "op@example.com", "operator", "main");
    let mut admin = person(&service, "admin@example.com", "admin", "main");
    admin.get(PEOPLE);
    let invite = [
        ("action", "invite"),
        ("email", "new@example.com"),
        ("role", "member"),
    ];
    send(&mut admin, PEOPLE, &invite);
    sign_in(
        &mut Browser::new(&service),
        "admin@example.com",
        "not this one",
    );
    service.server.cli(&["account", "credit", "other", "5.00"]);

    let page = admin.get("/dashboard/settings/audit").text();
    for expected in [
        "person.invite",
        "new@example.com",
        "session.open.refused",
        "127.0.0.1",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let rows = |page: &str| page.matches("<tr><td").count();
    let credits = admin.get("/dashboard/settings/audit?action=account.credit");
    assert_eq!(rows(&credits.text()), 0, "of another account");
    for (query, expected) in [
        ("?action=account.credit", 1),
        ("?account=other&action=account", 1),
        ("?who=admin%40example.com&action=person.invite", 1),
        ("?who=nobody%40example.com", 0),
    ] {
        let page = operator.get(&format!("/dashboard/operator/audit{query}"));
        assert_eq!(page.status, 200, "{query}");
        assert_eq!(rows(&page.text()), expected, "{query}: {}", page.text());
    }
    let unknown = operator.get("/dashboard/operator/audit?account=nothing");
    assert_eq!(unknown.status, 422, "{}", unknown.text());

    let log = service
        .server
        .cli_json(&["audit", "--json", "--limit", "1000"]);
    let log = log.as_array().expect("a list");
    let by = |who: &str, action: &str| {
        let fits = |entry: &&serde_json::Value| entry["who"] == who && entry["action"] == action;
        log.iter().filter(fits).count()
    };
    assert_eq!(by("admin@example.com", "person.invite"), 1);
    assert_eq!(by("admin@example.com", "person.join"), 1);
    assert_eq!(by("admin@example.com", "session.open.refused"), 1);
    assert_eq!(by("command line", "account.credit"), 1);
    assert_eq!(by("first start", "account.create"), 1);
    admin.get(PEOPLE);
    for _ in 0..60 {
        assert_eq!(send(&mut admin, PEOPLE, &invite).status, 200);
    }
    let page =
        operator.get("/dashboard/operator/audit?action=person.invite&who=admin%40example.com");
    let page = page.text();
    assert_eq!(rows(&page), 50, "a page");
    let (_, older) = page
        .split_once("<a class=\"button quiet\" href=\"")
        .expect("older ones");
    let older = older.split('"').next().expect("its end");
    let older = older.replace("&#38;", "&");
    assert_eq!(rows(&operator.get(&older).text()), 11);
}
