//! Refreshes and revocations that are refused. RFC 6749, section 6; RFC 9700, section 4.14;
//! RFC 7009.

use std::thread;

use testkit::Backend;

use super::site::{REDIRECT, Site, change, encode, error, params, table};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;

const INVALID: &str = "
    no token            | 400 | invalid_request | -refresh_token
    a cut one           | 400 | invalid_grant   | refresh_token={cut}
    an expired one      | 400 | invalid_grant   | refresh_token={expired}
    the access token    | 400 | invalid_grant   | refresh_token={access}
    an owner's token    | 400 | invalid_grant   | refresh_token={api}
    a code              | 400 | invalid_grant   | refresh_token={code}
    for a code          | 400 | invalid_request | grant_type=authorization_code
    no client           | 401 | invalid_client  | -client_id
    an unknown client   | 401 | invalid_client  | client_id=client_x
    another client      | 400 | invalid_grant   | client_id={other}
    more                | 400 | invalid_scope   | scope=sms:rates hlr:lookup
    not for clients     | 400 | invalid_scope   | scope=sms:read
    unknown             | 400 | invalid_scope   | scope=admin
    a foreign resource  | 400 | invalid_target  | resource=https://evil.example/mcp
    twice               | 400 | invalid_request | +refresh_token={refresh}
    two clients         | 400 | invalid_request | +client_id={other}
    a secret            | 401 | invalid_client  | client_secret=x
";

#[test]
fn a_refresh_token_works_only_for_its_own_client_and_scopes() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let issued = site.tokens(&client);
    let good = site.refresh_params(&client, &issued.refresh);
    let placeholders = [
        ("refresh", issued.refresh.as_str()),
        ("cut", &issued.refresh[..issued.refresh.len() - 1]),
        ("expired", &site.expired_refresh(&client)),
        ("access", &issued.access),
        ("api", &site.service.token),
        ("code", &site.code(&client)),
        ("other", &site.register(REDIRECT)),
    ];
    for [name, status, expected, changed] in table(INVALID) {
        let before = site.issued();
        let answer = site.exchange(&change(&good, changed, &placeholders));
        assert_eq!(
            answer.status.to_string(),
            status,
            "{name}: {}",
            answer.text()
        );
        assert_eq!(error(&answer), expected, "{name}");
        assert_eq!(site.issued(), before, "{name}");
        assert_eq!(site.rest_status(&issued.access), 200, "{name}");
    }
    assert_eq!(
        site.exchange(&good).status,
        200,
        "the token itself was valid"
    );
}

#[test]
fn a_refresh_without_a_scope_keeps_all_scopes() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let mut issued = site.tokens(&client);
    for scope in ["", "scope=", "scope=offline_access"] {
        let refresh_params = site.refresh_params(&client, &issued.refresh);
        let refresh_params = match scope {
            "" => refresh_params,
            scope => change(&refresh_params, scope, &[]),
        };
        issued = site.exchange_ok(&refresh_params);
        assert_eq!(issued.answer["scope"], "sms:send sms:rates", "{scope:?}");
    }
}

#[test]
fn a_refresh_token_gives_no_access() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let issued = site.tokens(&client);
    assert!(issued.refresh.starts_with("sbr_"), "it has its own prefix");
    let as_access = format!("sb_{}", &issued.refresh[4..]);
    for (name, token) in [
        ("as issued", &issued.refresh),
        ("with another prefix", &as_access),
    ] {
        assert_eq!(site.rest_status(token), 401, "{name}");
    }
    assert_eq!(site.rest_status(&issued.access), 200);
}

#[test]
fn a_reused_refresh_token_revokes_its_family() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    for generations in 2..=4 {
        let first = site.tokens(&client);
        let mut last = site.exchange_ok(&site.refresh_params(&client, &first.refresh));
        for _ in 1..generations {
            last = site.exchange_ok(&site.refresh_params(&client, &last.refresh));
        }
        assert_eq!(site.rest_status(&last.access), 200);
        let before = site.issued();
        for token in [&first.refresh, &last.refresh, &first.refresh] {
            let answer = site.exchange(&site.refresh_params(&client, token));
            assert_eq!(error(&answer), "invalid_grant");
        }
        assert_eq!(site.issued(), before);
        wait_for("the newest access token is refused", || {
            (site.rest_status(&last.access) == 401).then_some(())
        });
    }
}

/// Several processes of one client may refresh at the same time, for instance when they start.
fn concurrent_refreshes_get_the_same_tokens(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    let refresh_params = site.refresh_params(&client, &first.refresh);
    let body = encode(&refresh_params);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let service = &site.service;
    let answers: Vec<_> = thread::scope(|scope| {
        let send = || service.raw("POST", "/oauth/token", &headers, body.as_bytes());
        let requests: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        let answers = requests
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join);
        answers.map(|answer| answer.expect("no panic")).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        for name in ["access_token", "refresh_token", "scope", "token_type"] {
            assert_eq!(answer[name], answers[0].json()[name], "{name}");
        }
        let expires_in = answer["expires_in"].as_i64().expect("seconds");
        assert!((1..=3600).contains(&expires_in), "{expires_in}");
    }
    let issued = answers[0].json();
    let text = |name: &str| issued[name].as_str().expect(name).to_owned();
    assert_eq!(
        site.rest_status(&text("access_token")),
        200,
        "the grant is still valid"
    );
    site.exchange_ok(&site.refresh_params(&client, &text("refresh_token")));
}

on_both_backends!(concurrent_refreshes_get_the_same_tokens);

#[test]
fn a_late_repetition_of_a_refresh_revokes_the_family() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    let refresh_params = site.refresh_params(&client, &first.refresh);
    let issued = site.exchange_ok(&refresh_params);
    let again = site.exchange_ok(&refresh_params);
    assert_eq!(
        (&again.access, &again.refresh),
        (&issued.access, &issued.refresh)
    );
    site.change_stored(
        "UPDATE token SET revoked_us = revoked_us - 11000000 WHERE successor_salt IS NOT NULL",
    );
    let late = site.exchange(&refresh_params);
    assert_eq!((late.status, error(&late).as_str()), (400, "invalid_grant"));
    wait_for("the access token is refused", || {
        (site.rest_status(&issued.access) == 401).then_some(())
    });
    let refresh_params = site.refresh_params(&client, &issued.refresh);
    assert_eq!(error(&site.exchange(&refresh_params)), "invalid_grant");
}

#[test]
fn a_refreshed_token_cannot_outlive_its_grant() {
    let site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_OAUTH__GRANT_DAYS", "1")
    });
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    // Half an hour is left of the day.
    site.change_stored("UPDATE oauth_grant SET created_us = created_us - 84600000000");
    let issued = site.exchange_ok(&site.refresh_params(&client, &first.refresh));
    let expires_in = issued.answer["expires_in"].as_i64().expect("seconds");
    assert!((1..=1800).contains(&expires_in), "{expires_in}");
    site.change_stored("UPDATE oauth_grant SET created_us = created_us - 1800000000");
    let answer = site.exchange(&site.refresh_params(&client, &issued.refresh));
    assert_eq!(error(&answer), "invalid_grant");
}

#[test]
fn endless_refreshes_are_slowed_down() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let (mut last, other) = (site.tokens(&client), site.tokens(&client));
    // Few are forgiven meanwhile, even on a slow machine.
    let slowed = (0..2000).find_map(|_| {
        let answer = site.exchange(&site.refresh_params(&client, &last.refresh));
        if answer.status == 200 {
            last.refresh = answer.json()["refresh_token"]
                .as_str()
                .expect("a token")
                .to_owned();
            return None;
        }
        Some(answer)
    });
    let slowed = slowed.expect("it is slowed down");
    assert_eq!(slowed.status, 429, "{}", slowed.text());
    assert_eq!(error(&slowed), "temporarily_unavailable");
    assert!(slowed.header("retry-after").is_some());
    site.exchange_ok(&site.refresh_params(&client, &other.refresh));
}

#[test]
fn only_its_own_client_can_revoke_a_token() {
    let site = Site::start(Backend::Sqlite);
    let (client, other) = (site.register(REDIRECT), site.register(REDIRECT));
    let issued = site.tokens(&client);
    let api = site.service.token.clone();
    let good = params(&[("token", &issued.access), ("client_id", &client)]);
    let placeholders = [
        ("refresh", issued.refresh.as_str()),
        ("other", &other),
        ("api", &api),
    ];
    // The answer does not reveal whether a token exists.
    for [name, status, changed] in table(
        "
        another's access token | 400 | client_id={other}
        no token               | 400 | -token
        no client              | 400 | -client_id
        twice                  | 400 | +token={refresh}
        a secret               | 401 | client_secret=x
        unknown                | 200 | token=x
        an owner's token       | 200 | token={api}
        ",
    ) {
        let answer = site.send("/oauth/revoke", &change(&good, changed, &placeholders));
        assert_eq!(
            answer.status.to_string(),
            status,
            "{name}: {}",
            answer.text()
        );
        assert_eq!(site.rest_status(&issued.access), 200, "{name}");
        assert_eq!(site.rest_status(&api), 200, "{name}");
    }
    let others = params(&[("token", &issued.refresh), ("client_id", &other)]);
    assert_eq!(site.send("/oauth/revoke", &others).status, 400);
    let json = [("Content-Type", "application/json")];
    let answer = site.call("POST", "/oauth/revoke", &json, b"{}");
    assert_eq!(answer.status, 400, "JSON");
    assert_eq!(site.call("GET", "/oauth/revoke", &[], b"").status, 405);
    site.exchange_ok(&site.refresh_params(&client, &issued.refresh));
}

#[test]
fn guessing_tokens_to_revoke_is_slowed_down() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("X-Forwarded-For", "203.0.113.9"),
    ];
    let guess = |number: usize| {
        let body = format!("client_id={client}&token=sbr_guess{number}");
        site.service
            .raw("POST", "/oauth/revoke", &headers, body.as_bytes())
    };
    assert_eq!(
        guess(0).status,
        200,
        "the answer does not reveal whether it exists"
    );
    // Few are forgiven meanwhile, even on a slow machine.
    let slowed = (1..2000).map(guess).find(|answer| answer.status == 429);
    let slowed = slowed.expect("it is slowed down");
    assert!(slowed.header("retry-after").is_some());
}
