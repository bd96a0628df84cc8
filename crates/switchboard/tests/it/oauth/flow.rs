//! The whole flow, from the authorization request to the last token.

use domain::Permission;
use serde_json::json;
use std::thread;

use super::site::{REDIRECT, STATE, Site, error, params, query};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;
use testkit::Backend;

on_both_backends!(
    a_client_gets_only_what_a_person_granted,
    tokens_are_listed_and_can_be_revoked_there,
    a_client_refreshes_and_revokes_its_tokens,
    only_one_of_many_concurrent_redemptions_gets_tokens,
);

fn a_client_gets_only_what_a_person_granted(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let id = site.start_request(&site.authorize_params(&client, REDIRECT));
    let redirect = site
        .approve(&id, &[Permission::SmsRates])
        .expect("approved");
    assert!(
        redirect
            .as_str()
            .starts_with("https://client.example/cb?code=")
    );
    assert_eq!(query(&redirect, "state").as_deref(), Some(STATE));
    assert_eq!(query(&redirect, "iss"), Some(site.issuer()));
    assert_eq!(site.approve(&id, &[Permission::SmsRates]), None, "once");
    assert_eq!(site.deny(&id), None, "once");

    let code = query(&redirect, "code").expect("a code");
    let answer = site.exchange(&site.redeem_params(&client, &code));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let issued = answer.json();
    let access = issued["access_token"].as_str().expect("a token");
    let expected = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": issued["refresh_token"], "scope": "sms:rates",
    });
    assert_eq!(issued, expected);
    for (method, path, status) in [
        ("GET", "/token", 200),
        ("GET", "/rates", 200),
        ("POST", "/sms", 403),
        ("GET", "/sms?scheduled", 403),
        ("POST", "/hlr", 403),
        ("GET", "/operators/1", 403),
        ("POST", "/senderId", 403),
    ] {
        let answer = site.service.call_as(access, method, path, b"{}");
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
}

fn tokens_are_listed_and_can_be_revoked_there(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let (kept, issued) = (site.tokens(&client), site.tokens(&client));
    let list = || {
        let list = site.service.server.cli_json(&["token", "list", "--json"]);
        let rows = list.as_array().expect("a list").clone();
        let row = |row: &serde_json::Value| (row["name"].to_string(), row["id"].to_string());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let names = |list: &[(String, String)]| -> Vec<String> {
        list.iter().skip(1).map(|(name, _)| name.clone()).collect()
    };
    let (access, refresh) = ("\"oauth:access:Acme Desk\"", "\"oauth:refresh:Acme Desk\"");
    let rows = list();
    assert_eq!(names(&rows), [access, refresh, access, refresh]);

    let revoke = |id: &str| {
        let output = site.service.server.cli(&["token", "revoke", id]);
        assert!(output.status.success(), "{output:?}");
    };
    assert_eq!(site.rest_status(&issued.access), 200);
    revoke(&rows[4].1);
    wait_for("the access token of the family is refused", || {
        (site.rest_status(&issued.access) == 401).then_some(())
    });
    let refreshed = site.exchange(&site.refresh_params(&client, &issued.refresh));
    assert_eq!(
        (refreshed.status, error(&refreshed).as_str()),
        (400, "invalid_grant")
    );
    assert_eq!(names(&list()), [access, refresh], "the other family");

    revoke(&rows[1].1);
    wait_for("the other access token is refused", || {
        (site.rest_status(&kept.access) == 401).then_some(())
    });
    let refreshed = site.exchange_ok(&site.refresh_params(&client, &kept.refresh));
    assert_eq!(
        site.rest_status(&refreshed.access),
        200,
        "its refresh token still works"
    );
}

fn a_client_refreshes_and_revokes_its_tokens(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    assert_eq!(first.answer["scope"], "sms:send sms:rates");
    let mut narrower = site.refresh_params(&client, &first.refresh);
    narrower.extend(params(&[("scope", "sms:rates")]));
    let second = site.exchange_ok(&narrower);
    assert_eq!(second.answer["scope"], "sms:rates");
    assert_ne!(first.refresh, second.refresh);
    wait_for("the previous token is refused", || {
        (site.rest_status(&first.access) == 401).then_some(())
    });
    let third = site.exchange_ok(&site.refresh_params(&client, &second.refresh));
    assert_eq!(third.answer["scope"], "sms:send sms:rates");
    assert_eq!(site.rest_status(&third.access), 200);

    for (token, refresh_still_works) in [(&third.access, true), (&third.refresh, false)] {
        let params = params(&[("token", token), ("client_id", &client)]);
        for n in 0..2 {
            let answer = site.send("/oauth/revoke", &params);
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{n}");
        }
        wait_for("the revoked token is refused", || {
            (site.rest_status(&third.access) == 401).then_some(())
        });
        if refresh_still_works {
            continue;
        }
        let refreshed = site.exchange(&site.refresh_params(&client, &third.refresh));
        assert_eq!(error(&refreshed), "invalid_grant");
    }
}

fn only_one_of_many_concurrent_redemptions_gets_tokens(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let code = site.code(&client);
    let body = super::site::encode(&site.redeem_params(&client, &code));
    let address = site.service.server.addr();
    let many: Vec<_> = (0..20)
        .map(|n| {
            let body = body.clone();
            thread::spawn(move || {
                let from = format!("203.0.113.{n}");
                let headers = [
                    ("X-Forwarded-For", from.as_str()),
                    ("Content-Type", "application/x-www-form-urlencoded"),
                ];
                let path = "/oauth/token";
                testkit::http::request(address, "POST", path, &headers, body.as_bytes())
            })
        })
        .collect();
    let answers = many.into_iter().map(|one| one.join().expect("no panic"));
    let answers: Vec<_> = answers.map(|answer| answer.expect("an answer")).collect();
    let (issued, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(issued.len(), 1);
    for answer in refused {
        assert_eq!(
            (answer.status, error(answer).as_str()),
            (400, "invalid_grant")
        );
    }
    // Redeeming the code again revoked it.
    let access = issued[0].json()["access_token"].as_str().map(str::to_owned);
    wait_for("the token is refused", || {
        (site.rest_status(access.as_deref().expect("a token")) == 401).then_some(())
    });
}

#[test]
fn a_person_denies_a_request() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let id = site.start_request(&site.authorize_params(&client, REDIRECT));
    for (name, scopes) in [
        ("nothing", vec![]),
        ("what was not asked for", vec![Permission::HlrLookup]),
        ("more", vec![Permission::SmsRates, Permission::SmsRead]),
    ] {
        assert_eq!(site.approve(&id, &scopes), None, "{name}");
    }
    let redirect = site.deny(&id).expect("the request is pending");
    assert_eq!(query(&redirect, "error").as_deref(), Some("access_denied"));
    assert_eq!(query(&redirect, "state").as_deref(), Some(STATE));
    assert_eq!(query(&redirect, "iss"), Some(site.issuer()));
    assert_eq!(query(&redirect, "code"), None);
    assert_eq!(site.approve(&id, &[Permission::SmsRates]), None, "too late");
}

#[test]
fn nothing_secret_is_logged_or_stored() {
    let mut site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_LOG__LEVEL", "trace")
    });
    let client = site.register(REDIRECT);
    let id = site.start_request(&site.authorize_params(&client, REDIRECT));
    let redirect = site
        .approve(&id, &[Permission::SmsRates])
        .expect("approved");
    let code = query(&redirect, "code").expect("a code");
    let first = site.exchange_ok(&site.redeem_params(&client, &code));
    let second = site.exchange_ok(&site.refresh_params(&client, &first.refresh));
    let third = site.exchange_ok(&site.refresh_params(&client, &second.refresh));
    site.exchange_ok(&site.refresh_params(&client, &second.refresh));
    site.exchange(&site.refresh_params(&client, &first.refresh));
    site.service.server.terminate();
    let output = site.service.server.output();
    assert!(
        output.contains("came again"),
        "the reuse is logged: {output}"
    );
    let folder = std::fs::read_dir(site.service.server.data_dir()).expect("the folder");
    let files = folder.map(|file| std::fs::read(file.expect("an entry").path()));
    let files: Vec<Vec<u8>> = files.map(|bytes| bytes.expect("a file")).collect();
    for (name, secret) in [
        ("the request ID", &id),
        ("the code", &code),
        ("an access token", &first.access),
        ("the next", &second.access),
        ("a refresh token", &first.refresh),
        ("the next", &second.refresh),
        ("one that was issued twice", &third.access),
        ("and its refresh token", &third.refresh),
    ] {
        // Without its prefix, which is not secret.
        let secret = &secret[4..];
        assert!(!output.contains(secret), "{name} is in the output");
        let contains_secret = |bytes: &Vec<u8>| {
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        assert!(!files.iter().any(contains_secret), "{name} is stored");
    }
    assert!(!output.contains(super::site::VERIFIER), "the verifier");
}
