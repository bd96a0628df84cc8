//! People of several accounts, and what one account's admins learn and decide about them.

use testkit::Backend;
use testkit::http::Response;

use super::managing::{accept, id, link};
use super::security::{send, sign_in};
use super::{Browser, PASSWORD, joined, on_both_backends};
use crate::rest::service::Service;

on_both_backends!(
    somebody_joins_a_second_account_and_switches,
    an_invitation_does_not_tell_who_signs_in_here,
    an_admin_of_one_account_gets_into_no_other,
    whoever_is_removed_from_an_account_keeps_the_others,
    one_account_does_not_withdraw_the_invitation_of_another,
);

const OWN: &str = "/dashboard/settings/people";
const ALL: &str = "/dashboard/operator/people";
const ACCOUNTS: &str = "/dashboard/accounts";
const OTHER: &str = "purple tram eleven";

struct House {
    service: Service,
}

/// Two accounts of names that stand nowhere else on a page.
fn house(backend: Backend) -> House {
    let service = Service::start(backend);
    for name in ["harbour", "lighthouse"] {
        service.create_account(name);
    }
    House { service }
}

impl House {
    fn person(&self, email: &str, role: &str, account: &str) -> Browser<'_> {
        joined(
            &self.service,
            email,
            &["--role", role, "--account", account],
        )
    }
}

/// An admin's answer to the form for an invitation.
fn invite(admin: &mut Browser<'_>, email: &str, role: &str) -> Response {
    admin.get(OWN);
    let fields = [("action", "invite"), ("email", email), ("role", role)];
    send(admin, OWN, &fields)
}

/// Opens an invitation signed in, and joins.
fn join(browser: &mut Browser<'_>, link: &str) -> Response {
    let page = browser.get(link);
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("Join an account"), "{}", page.text());
    browser.submit(&[])
}

/// The account that a page is about.
fn here(browser: &mut Browser<'_>) -> String {
    let page = browser.get("/dashboard").text();
    let (_, rest) = page
        .split_once("title=\"Your accounts\">")
        .unwrap_or_else(|| panic!("no account: {page}"));
    rest.split('<').next().expect("its end").to_owned()
}

/// The number of an account in the list of somebody's.
fn number(browser: &mut Browser<'_>, account: &str) -> String {
    let page = browser.get(ACCOUNTS).text();
    let (before, _) = page
        .split_once(&format!("aria-label=\"Switch to {account}\""))
        .unwrap_or_else(|| panic!("no way to {account}: {page}"));
    let (_, number) = before.rsplit_once("value=\"").expect("a number");
    number.split('"').next().expect("its end").to_owned()
}

fn switch(browser: &mut Browser<'_>, account: &str) -> Response {
    let number = number(browser, account);
    send(browser, ACCOUNTS, &[("account", number.as_str())])
}

fn somebody_joins_a_second_account_and_switches(backend: Backend) {
    let house = house(backend);
    let mut ann = house.person("ann@example.com", "member", "harbour");
    let mut admin = house.person("boss@example.com", "admin", "lighthouse");
    let invited = invite(&mut admin, "ann@example.com", "admin");
    assert_eq!(invited.status, 200, "{}", invited.text());
    let link = link(&invited);

    assert_eq!(here(&mut ann), "harbour");
    let old = ann.cookie("switchboard").expect("signed in").to_owned();
    let joined = join(&mut ann, &link);
    assert_eq!(
        (joined.status, joined.header("location")),
        (303, Some("/dashboard"))
    );
    assert_eq!(here(&mut ann), "lighthouse");
    assert_eq!(ann.get(OWN).status, 200, "an admin here");
    let mut former = Browser::new(&house.service);
    former.set_cookie("switchboard", &old);
    assert_eq!(
        former.get("/dashboard").status,
        303,
        "the session has another secret"
    );
    assert_eq!(ann.get(&link).status, 404, "used");

    // A page that still shows the account of before does nothing in the other.
    ann.get(OWN);
    let stale = ann.token();
    assert_eq!(switch(&mut ann, "harbour").status, 303);
    assert_eq!(here(&mut ann), "harbour");
    assert_eq!(ann.get(OWN).status, 403, "a member here");
    let fields = [("form_token", stale.as_str()), ("account", "1")];
    assert_eq!(
        ann.post(ACCOUNTS, &fields).status,
        403,
        "a form of the other account's page"
    );

    let strange = {
        ann.get(ACCOUNTS);
        send(&mut ann, ACCOUNTS, &[("account", "999")])
    };
    assert_eq!(strange.status, 404, "{}", strange.text());
    let mut again = Browser::new(&house.service);
    assert_eq!(sign_in(&mut again, "ann@example.com", PASSWORD).status, 303);
    assert_eq!(here(&mut again), "harbour", "the first one first");
    assert_eq!(switch(&mut again, "lighthouse").status, 303);
    assert_eq!(here(&mut again), "lighthouse");
    assert_eq!(here(&mut ann), "harbour", "each browser by itself");
}

fn an_invitation_does_not_tell_who_signs_in_here(backend: Backend) {
    let house = house(backend);
    house.person("ann@example.com", "admin", "harbour");
    let mut admin = house.person("boss@example.com", "admin", "lighthouse");
    let shown = ["ann@example.com", "nobody@example.com"].map(|email| {
        let answer = invite(&mut admin, email, "member");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let link = link(&answer);
        let page = Browser::new(&house.service).get(&link);
        assert_eq!(page.status, 200);
        // What differs is the address, the link and the form's token.
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

fn an_admin_of_one_account_gets_into_no_other(backend: Backend) {
    let house = house(backend);
    let mut ann = house.person("ann@example.com", "admin", "harbour");
    let mut admin = house.person("boss@example.com", "admin", "lighthouse");
    let invitation = link(&invite(&mut admin, "ann@example.com", "member"));

    // Whoever opens the link cannot take the place of who is invited.
    let mut thief = Browser::new(&house.service);
    thief.get(&invitation);
    let fields = [("password", OTHER), ("repeated", OTHER)];
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
    for (password, status) in [(OTHER, 401), (PASSWORD, 303)] {
        let mut browser = Browser::new(&house.service);
        assert_eq!(
            sign_in(&mut browser, "ann@example.com", password).status,
            status
        );
    }
    // A link for a new password would open the other account, too.
    assert_eq!(join(&mut ann, &invitation).status, 303);
    let page = admin.get(OWN).text();
    assert!(!page.contains("harbour"), "{page}");
    let ann_id = id(&page, "ann@example.com");
    let reset = [("action", "reset"), ("person", ann_id.as_str())];
    let refused = send(&mut admin, OWN, &reset);
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

    let mut operator = house.person("op@example.com", "operator", "harbour");
    let page = operator.get(ALL).text();
    assert!(page.contains("Remove from lighthouse"), "{page}");
    let made = send(&mut operator, ALL, &reset);
    assert_eq!(accept(&house.service, &link(&made), OTHER), 303);
}

fn whoever_is_removed_from_an_account_keeps_the_others(backend: Backend) {
    let house = house(backend);
    let mut ann = house.person("ann@example.com", "member", "harbour");
    let mut boss = house.person("boss@example.com", "admin", "lighthouse");
    let mut chief = house.person("chief@example.com", "admin", "harbour");
    let invitation = link(&invite(&mut boss, "ann@example.com", "member"));
    assert_eq!(join(&mut ann, &invitation).status, 303);

    let page = boss.get(OWN).text();
    let ann_id = id(&page, "ann@example.com");
    let promoted = [
        ("action", "role"),
        ("person", ann_id.as_str()),
        ("role", "admin"),
    ];
    assert_eq!(send(&mut boss, OWN, &promoted).status, 200);
    assert_eq!(ann.get(OWN).status, 200, "an admin of the other");
    let mut first = Browser::new(&house.service);
    assert_eq!(sign_in(&mut first, "ann@example.com", PASSWORD).status, 303);
    assert_eq!(first.get(OWN).status, 403, "still a member of the first");

    boss.get(OWN);
    let removed = [("action", "remove"), ("person", ann_id.as_str())];
    assert_eq!(send(&mut boss, OWN, &removed).status, 200);
    assert_eq!(
        ann.get("/dashboard").status,
        303,
        "signed out where she was removed"
    );
    assert_eq!(here(&mut first), "harbour");
    assert!(
        !first.get(ACCOUNTS).text().contains("lighthouse"),
        "gone from her list"
    );
    boss.get(OWN);
    assert_eq!(
        send(&mut boss, OWN, &removed).status,
        422,
        "nobody of theirs"
    );

    chief.get(OWN);
    assert_eq!(send(&mut chief, OWN, &removed).status, 200);
    assert_eq!(first.get("/dashboard").status, 303);
    let mut browser = Browser::new(&house.service);
    assert_eq!(
        sign_in(&mut browser, "ann@example.com", PASSWORD).status,
        401,
        "no account is left"
    );
}

fn one_account_does_not_withdraw_the_invitation_of_another(backend: Backend) {
    let house = house(backend);
    let mut boss = house.person("boss@example.com", "admin", "lighthouse");
    let mut chief = house.person("chief@example.com", "admin", "harbour");
    let first = link(&invite(&mut chief, "new@example.com", "member"));
    let second = link(&invite(&mut boss, "new@example.com", "member"));
    let withdraw = [("action", "withdraw"), ("email", "new@example.com")];
    assert_eq!(send(&mut boss, OWN, &withdraw).status, 200);
    assert_eq!(send(&mut boss, OWN, &withdraw).status, 422, "it is gone");
    assert_eq!(accept(&house.service, &second, PASSWORD), 404);
    assert_eq!(
        accept(&house.service, &first, PASSWORD),
        303,
        "the first one's still works"
    );
}
