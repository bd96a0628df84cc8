//! From the question to the last token.

use domain::Permission;
use serde_json::json;
use std::thread;

use super::site::{REDIRECT, STATE, Site, error, params, query};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;
use testkit::Backend;

on_both_backends!(
    a_client_gets_what_a_person_granted_and_no_more,
    tokens_are_in_the_list_and_revoking_one_there_counts,
    a_client_renews_its_tokens_and_gives_them_back,
    of_many_that_redeem_at_once_one_is_given_tokens,
);

fn a_client_gets_what_a_person_granted_and_no_more(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let id = site.ask(&site.question(&client, REDIRECT));
    let back = site.approve(&id, &[Permission::SmsRates]).expect("taken");
    assert!(back.as_str().starts_with("https://client.example/cb?code="));
    assert_eq!(query(&back, "state").as_deref(), Some(STATE));
    assert_eq!(query(&back, "iss"), Some(site.issuer()));
    assert_eq!(site.approve(&id, &[Permission::SmsRates]), None, "once");
    assert_eq!(site.deny(&id), None, "once");

    let code = query(&back, "code").expect("a code");
    let answer = site.exchange(&site.redemption(&client, &code));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let given = answer.json();
    let access = given["access_token"].as_str().expect("a token");
    let expected = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": given["refresh_token"], "scope": "sms:rates",
    });
    assert_eq!(given, expected);
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

fn tokens_are_in_the_list_and_revoking_one_there_counts(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let (kept, given) = (site.tokens(&client), site.tokens(&client));
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
    assert_eq!(site.opens(&given.access), 200);
    revoke(&rows[4].1);
    wait_for("the access token of the family is refused", || {
        (site.opens(&given.access) == 401).then_some(())
    });
    let renewed = site.exchange(&site.renewal(&client, &given.refresh));
    assert_eq!(
        (renewed.status, error(&renewed).as_str()),
        (400, "invalid_grant")
    );
    assert_eq!(names(&list()), [access, refresh], "the other family");

    revoke(&rows[1].1);
    wait_for("the other access token is refused", || {
        (site.opens(&kept.access) == 401).then_some(())
    });
    let renewed = site.given(&site.renewal(&client, &kept.refresh));
    assert_eq!(
        site.opens(&renewed.access),
        200,
        "its refresh token still works"
    );
}

fn a_client_renews_its_tokens_and_gives_them_back(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    assert_eq!(first.answer["scope"], "sms:send sms:rates");
    let mut less = site.renewal(&client, &first.refresh);
    less.extend(params(&[("scope", "sms:rates")]));
    let second = site.given(&less);
    assert_eq!(second.answer["scope"], "sms:rates");
    assert_ne!(first.refresh, second.refresh);
    wait_for("the token before it is refused", || {
        (site.opens(&first.access) == 401).then_some(())
    });
    let third = site.given(&site.renewal(&client, &second.refresh));
    assert_eq!(third.answer["scope"], "sms:send sms:rates");
    assert_eq!(site.opens(&third.access), 200);

    for (token, then_renews) in [(&third.access, true), (&third.refresh, false)] {
        let params = params(&[("token", token), ("client_id", &client)]);
        for n in 0..2 {
            let answer = site.send("/oauth/revoke", &params);
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{n}");
        }
        wait_for("what was given back is refused", || {
            (site.opens(&third.access) == 401).then_some(())
        });
        if then_renews {
            continue;
        }
        let renewed = site.exchange(&site.renewal(&client, &third.refresh));
        assert_eq!(error(&renewed), "invalid_grant");
    }
}

fn of_many_that_redeem_at_once_one_is_given_tokens(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let code = site.code(&client);
    let body = super::site::encode(&site.redemption(&client, &code));
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
    let (given, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(given.len(), 1);
    for answer in refused {
        assert_eq!(
            (answer.status, error(answer).as_str()),
            (400, "invalid_grant")
        );
    }
    // The others betrayed it.
    let access = given[0].json()["access_token"].as_str().map(str::to_owned);
    wait_for("the token is refused", || {
        (site.opens(access.as_deref().expect("a token")) == 401).then_some(())
    });
}

#[test]
fn a_person_says_no() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let id = site.ask(&site.question(&client, REDIRECT));
    for (name, scopes) in [
        ("nothing", vec![]),
        ("what was not asked for", vec![Permission::HlrLookup]),
        ("more", vec![Permission::SmsRates, Permission::SmsRead]),
    ] {
        assert_eq!(site.approve(&id, &scopes), None, "{name}");
    }
    let back = site.deny(&id).expect("the question stands");
    assert_eq!(query(&back, "error").as_deref(), Some("access_denied"));
    assert_eq!(query(&back, "state").as_deref(), Some(STATE));
    assert_eq!(query(&back, "iss"), Some(site.issuer()));
    assert_eq!(query(&back, "code"), None);
    assert_eq!(site.approve(&id, &[Permission::SmsRates]), None, "too late");
}

#[test]
fn nothing_secret_is_logged_or_stored() {
    let mut site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_LOG__LEVEL", "trace")
    });
    let client = site.register(REDIRECT);
    let id = site.ask(&site.question(&client, REDIRECT));
    let back = site.approve(&id, &[Permission::SmsRates]).expect("taken");
    let code = query(&back, "code").expect("a code");
    let first = site.given(&site.redemption(&client, &code));
    let second = site.given(&site.renewal(&client, &first.refresh));
    let third = site.given(&site.renewal(&client, &second.refresh));
    site.given(&site.renewal(&client, &second.refresh));
    site.exchange(&site.renewal(&client, &first.refresh));
    site.service.server.terminate();
    let output = site.service.server.output();
    assert!(output.contains("came again"), "people are told: {output}");
    let folder = std::fs::read_dir(site.service.server.data_dir()).expect("the folder");
    let files = folder.map(|file| std::fs::read(file.expect("an entry").path()));
    let files: Vec<Vec<u8>> = files.map(|bytes| bytes.expect("a file")).collect();
    for (name, secret) in [
        ("the question's name", &id),
        ("the code", &code),
        ("an access token", &first.access),
        ("the next", &second.access),
        ("a refresh token", &first.refresh),
        ("the next", &second.refresh),
        ("one that was given twice", &third.access),
        ("and its refresh token", &third.refresh),
    ] {
        // Without its prefix, which is no secret.
        let secret = &secret[4..];
        assert!(!output.contains(secret), "{name} is in the output");
        let holds = |bytes: &Vec<u8>| {
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        assert!(!files.iter().any(holds), "{name} is stored");
    }
    assert!(!output.contains(super::site::VERIFIER), "the verifier");
}
