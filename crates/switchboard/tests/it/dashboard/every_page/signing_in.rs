//! Signing in: the second factor, invitations and links that no longer work.

use domain::Clock as _;
use engine::clock::SystemClock;

use super::site::Site;
use super::site::Viewer::{Member, SignedOut};
use crate::people::security::secret;
use crate::people::{PASSWORD, invite, path};

const SECURITY: &str = "/dashboard/settings/security";
const FACTOR: &str = "/dashboard/settings/security/second-factor";
const SIGN_IN: &str = "/dashboard/sign-in";
const CODE: &str = "/dashboard/sign-in/code";

pub(super) async fn check(site: &mut Site) {
    turn_on_second_factor(site).await;
    check_second_step(site).await;
    check_links(site).await;
}

async fn turn_on_second_factor(site: &mut Site) {
    site.send(Member, SECURITY, FACTOR, &[("action", "offer")])
        .await;
    site.check_shown("second-factor-offered", Member, 200, "not confirmed yet")
        .await;
    let key = "document.getElementById('factor-key').outerHTML";
    let key = site.page(Member).evaluate(key).await;
    let secret = secret(key.as_str().expect("a text"));
    let fields = |code| [("action", "enable"), ("code", code), ("password", PASSWORD)];
    site.send(Member, SECURITY, FACTOR, &fields("000000x"))
        .await;
    site.check_shown("second-factor-refused", Member, 422, "not valid now")
        .await;
    let code = secret.code(SystemClock.now());
    site.send(Member, SECURITY, FACTOR, &fields(&code)).await;
    site.check_shown("second-factor-on", Member, 200, "Recovery codes")
        .await;
}

async fn check_second_step(site: &mut Site) {
    let fields = |password| [("email", "ann@example.com"), ("password", password)];
    site.send(SignedOut, SIGN_IN, "", &fields("not this one"))
        .await;
    site.check_shown("sign-in-refused", SignedOut, 401, "password is wrong")
        .await;
    site.send(SignedOut, SIGN_IN, "", &fields(PASSWORD)).await;
    site.check_page("second-step", SignedOut, CODE).await;
    site.send(SignedOut, CODE, "", &[("code", "12345")]).await;
    site.check_shown("second-step-refused", SignedOut, 401, "This code is wrong")
        .await;
}

async fn check_links(site: &mut Site) {
    const DEAD: &str = "This link does not work";
    let link = "{invitation}";
    let weak = [("password", "short"), ("repeated", "other")];
    site.send(SignedOut, link, "", &weak).await;
    site.check_shown("invitation-refused", SignedOut, 422, "do not match")
        .await;
    let chosen = [("password", PASSWORD), ("repeated", PASSWORD)];
    site.send(SignedOut, link, "", &chosen).await;
    site.check_answer("invitation-used", SignedOut, link, 404, DEAD)
        .await;
    let late = invite(&site.service, "late@example.com", &["--account", "main"]);
    site.database()
        .execute_batch("UPDATE invitation SET expires_us = 1")
        .expect("a valid statement");
    site.check_answer("invitation-expired", SignedOut, &path(&late), 404, DEAD)
        .await;
}
