//! People with several accounts, and what the admins of one account can see and do.

use testkit::Backend;
use testkit::http::Response;

use super::managing::{accept, id, link};
use super::security::{send, sign_in};
use super::{Browser, PASSWORD, joined, on_both_backends};
use crate::rest::service::Service;

on_both_backends!(
    a_person_joins_a_second_account_and_switches,
    an_invitation_does_not_reveal_who_can_sign_in,
    an_admin_of_one_account_cannot_get_into_another,
    a_person_removed_from_an_account_keeps_the_others,
    one_account_does_not_withdraw_the_invitation_of_another,
);

const PEOPLE: &str = "/dashboard/settings/people";
const ALL_PEOPLE: &str = "/dashboard/operator/people";
const ACCOUNTS: &str = "/dashboard/accounts";
const OTHER_PASSWORD: &str = "purple tram eleven";

/// A service with two accounts, whose names appear nowhere else on a page.
struct Fixture {
    service: Service,
}

fn start(backend: Backend) -> Fixture {
    let service = Service::start(backend);
    for name in ["harbour", "lighthouse"] {
        service.create_account(name);
    }
    Fixture { service }
}

impl Fixture {
    fn person(&self, email: &str, role: &str, account: &str) -> Browser<'_> {
        joined(
            &self.service,
            email,
            &["--role", role, "--account", account],
        )
    }
}

/// Sends an admin's form for an invitation.
fn invite(admin: &mut Browser<'_>, email: &str, role: &str) -> Response {
    admin.get(PEOPLE);
    let fields = [("action", "invite"), ("email", email), ("role", role)];
    send(admin, PEOPLE, &fields)
}

/// Opens an invitation signed in, and joins.
fn join(browser: &mut Browser<'_>, link: &str) -> Response {
    let page = browser.get(link);
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("Join an account"), "{}", page.text());
    browser.submit(&[])
}

/// The account that the dashboard shows.
fn current_account(browser: &mut Browser<'_>) -> String {
    let page = browser.get("/dashboard").text();
    let (_, rest) = page
        .split_once("title=\"Your accounts\">")
        .unwrap_or_else(|| panic!("no account: {page}"));
    rest.split('<').next().expect("its end").to_owned()
}

/// The ID of an account in a person's list.
fn account_id(browser: &mut Browser<'_>, account: &str) -> String {
    let page = browser.get(ACCOUNTS).text();
    let (before, _) = page
        .split_once(&format!("aria-label=\"Switch to {account}\""))
        .unwrap_or_else(|| panic!("cannot switch to {account}: {page}"));
    let (_, account_id) = before.rsplit_once("value=\"").expect("an ID");
    account_id.split('"').next().expect("its end").to_owned()
}

fn switch(browser: &mut Browser<'_>, account: &str) -> Response {
    let account_id = account_id(browser, account);
    send(browser, ACCOUNTS, &[("account", account_id.as_str())])
}

fn a_person_joins_a_second_account_and_switches(backend: Backend) {
    let fixture = start(backend);
    let mut ann = fixture.person("ann@example.com", "member", "harbour");
    let mut admin = fixture.person("boss@example.com", "admin", "lighthouse");
    let invited = invite(&mut admin, "ann@example.com", "admin");
    assert_eq!(invited.status, 200, "{}", invited.text());
    let link = link(&invited);

    assert_eq!(current_account(&mut ann), "harbour");
    let old = ann.cookie("switchboard").expect("signed in").to_owned();
    let joined = join(&mut ann, &link);
    assert_eq!(
        (joined.status, joined.header("location")),
        (303, Some("/dashboard"))
    );
    assert_eq!(current_account(&mut ann), "lighthouse");
    assert_eq!(ann.get(PEOPLE).status, 200, "an admin here");
    let mut former = Browser::new(&fixture.service);
    former.set_cookie("switchboard", &old);
    assert_eq!(
        former.get("/dashboard").status,
        303,
        "the session has another secret"
    );
    assert_eq!(ann.get(&link).status, 404, "used");

    // A form from a page of the previous account is refused.
    ann.get(PEOPLE);
    let stale = ann.token();
    assert_eq!(switch(&mut ann, "harbour").status, 303);
    assert_eq!(current_account(&mut ann), "harbour");
    assert_eq!(ann.get(PEOPLE).status, 403, "a member here");
    let fields = [("form_token", stale.as_str()), ("account", "1")];
    assert_eq!(
        ann.post(ACCOUNTS, &fields).status,
        403,
        "a form of the other account's page"
    );

    let unknown = {
        ann.get(ACCOUNTS);
        send(&mut ann, ACCOUNTS, &[("account", "999")])
    };
    assert_eq!(unknown.status, 404, "{}", unknown.text());
    let mut again = Browser::new(&fixture.service);
    assert_eq!(sign_in(&mut again, "ann@example.com", PASSWORD).status, 303);
    assert_eq!(
        current_account(&mut again),
        "harbour",
        "the first account is the default"
    );
    assert_eq!(switch(&mut again, "lighthouse").status, 303);
    assert_eq!(current_account(&mut again), "lighthouse");
    assert_eq!(
        current_account(&mut ann),
        "harbour",
        "each browser has its own"
    );
}

fn an_invitation_does_not_reveal_who_can_sign_in(backend: Backend) {
    let fixture = start(backend);
    fixture.person("ann@example.com", "admin", "harbour");
    let mut admin = fixture.person("boss@example.com", "admin", "lighthouse");
    let shown = ["ann@example.com", "nobody@example.com"].map(|email| {
        let answer = invite(&mut admin, email, "member");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let link = link(&answer);
        let page = Browser::new(&fixture.service).get(&link);
        assert_eq!(page.status, 200);
        // Only the email address, the link and the form token differ.
        let token = page.text();
        let (_, token) = token
            .split_once("name=\"form_token\" value=\"")
            .expect("a token");
        let token = token.split('"').next().expect("its end").to_owned();
        page.text()
            .replace(email, "EMAIL")
            .replace(&link, "LINK")
            .replace(&token, "TOKEN")
    });
    assert_eq!(shown[0], shown[1]);
    let log = admin.get("/dashboard/settings/audit").text();
    assert!(!log.contains("harbour"), "{log}");
}

fn an_admin_of_one_account_cannot_get_into_another(backend: Backend) {
    let fixture = start(backend);
    let mut ann = fixture.person("ann@example.com", "admin", "harbour");
    let mut admin = fixture.person("boss@example.com", "admin", "lighthouse");
    let invitation = link(&invite(&mut admin, "ann@example.com", "member"));

    // Nobody but the invited person can use the link.
    let mut thief = Browser::new(&fixture.service);
    thief.get(&invitation);
    let fields = [("password", OTHER_PASSWORD), ("repeated", OTHER_PASSWORD)];
    let refused = thief.submit(&fields);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(thief.cookie("switchboard"), None);
    admin.get(&invitation);
    let refused = admin.submit(&fields);
    assert_eq!(
        refused.status,
        422,
        "signed in as somebody else: {}",
        refused.text()
    );
    for (password, status) in [(OTHER_PASSWORD, 401), (PASSWORD, 303)] {
        let mut browser = Browser::new(&fixture.service);
        assert_eq!(
            sign_in(&mut browser, "ann@example.com", password).status,
            status
        );
    }
    // A link for a new password would open the other account, too.
    assert_eq!(join(&mut ann, &invitation).status, 303);
    let page = admin.get(PEOPLE).text();
    assert!(!page.contains("harbour"), "{page}");
    let ann_id = id(&page, "ann@example.com");
    let reset = [("action", "reset"), ("person", ann_id.as_str())];
    let refused = send(&mut admin, PEOPLE, &reset);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(
        !refused.text().contains("/dashboard/invitation/"),
        "{}",
        refused.text()
    );
    assert!(
        refused
            .text()
            .contains("Only an operator can make this link."),
        "{}",
        refused.text()
    );

    let mut operator = fixture.person("op@example.com", "operator", "harbour");
    let page = operator.get(ALL_PEOPLE).text();
    assert!(page.contains("Remove from lighthouse"), "{page}");
    let created = send(&mut operator, ALL_PEOPLE, &reset);
    assert_eq!(
        accept(&fixture.service, &link(&created), OTHER_PASSWORD),
        303
    );
}

fn a_person_removed_from_an_account_keeps_the_others(backend: Backend) {
    let fixture = start(backend);
    let mut ann = fixture.person("ann@example.com", "member", "harbour");
    let mut boss = fixture.person("boss@example.com", "admin", "lighthouse");
    let mut chief = fixture.person("chief@example.com", "admin", "harbour");
    let invitation = link(&invite(&mut boss, "ann@example.com", "member"));
    assert_eq!(join(&mut ann, &invitation).status, 303);

    let page = boss.get(PEOPLE).text();
    let ann_id = id(&page, "ann@example.com");
    let promoted = [
        ("action", "role"),
        ("person", ann_id.as_str()),
        ("role", "admin"),
    ];
    assert_eq!(send(&mut boss, PEOPLE, &promoted).status, 200);
    assert_eq!(ann.get(PEOPLE).status, 200, "an admin of the other");
    let mut first = Browser::new(&fixture.service);
    assert_eq!(sign_in(&mut first, "ann@example.com", PASSWORD).status, 303);
    assert_eq!(first.get(PEOPLE).status, 403, "still a member of the first");

    boss.get(PEOPLE);
    let removed = [
        ("action", "remove"),
        ("person", ann_id.as_str()),
        ("sure", "yes"),
    ];
    assert_eq!(send(&mut boss, PEOPLE, &removed).status, 200);
    assert_eq!(
        ann.get("/dashboard").status,
        303,
        "signed out where she was removed"
    );
    assert_eq!(current_account(&mut first), "harbour");
    assert!(
        !first.get(ACCOUNTS).text().contains("lighthouse"),
        "not in her list any more"
    );
    boss.get(PEOPLE);
    assert_eq!(
        send(&mut boss, PEOPLE, &removed).status,
        422,
        "no longer a member"
    );

    chief.get(PEOPLE);
    assert_eq!(send(&mut chief, PEOPLE, &removed).status, 200);
    assert_eq!(first.get("/dashboard").status, 303);
    let mut browser = Browser::new(&fixture.service);
    assert_eq!(
        sign_in(&mut browser, "ann@example.com", PASSWORD).status,
        401,
        "no account is left"
    );
}

fn one_account_does_not_withdraw_the_invitation_of_another(backend: Backend) {
    let fixture = start(backend);
    let mut boss = fixture.person("boss@example.com", "admin", "lighthouse");
    let mut chief = fixture.person("chief@example.com", "admin", "harbour");
    let first = link(&invite(&mut chief, "new@example.com", "member"));
    let second = link(&invite(&mut boss, "new@example.com", "member"));
    let withdraw = [
        ("action", "withdraw"),
        ("email", "new@example.com"),
        ("sure", "yes"),
    ];
    assert_eq!(send(&mut boss, PEOPLE, &withdraw).status, 200);
    assert_eq!(send(&mut boss, PEOPLE, &withdraw).status, 422, "it is gone");
    assert_eq!(accept(&fixture.service, &second, PASSWORD), 404);
    assert_eq!(
        accept(&fixture.service, &first, PASSWORD),
        303,
        "the other account's invitation still works"
    );
}
