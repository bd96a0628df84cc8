//! Refresh tokens that give nothing, and tokens that cannot be given back. RFC 6749, section 6; RFC 9700, section 4.14;
//! RFC 7009.

use std::thread;

use testkit::Backend;

use super::site::{REDIRECT, Site, change, encode, error, params, table};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;

const WRONG: &str = "
    no token            | 400 | invalid_request | -refresh_token
    a cut one           | 400 | invalid_grant   | refresh_token={cut}
    a late one          | 400 | invalid_grant   | refresh_token={late}
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
fn a_refresh_token_is_good_for_nobody_else_and_never_for_more() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let given = site.tokens(&client);
    let good = site.renewal(&client, &given.refresh);
    let words = [
        ("refresh", given.refresh.as_str()),
        ("cut", &given.refresh[..given.refresh.len() - 1]),
        ("late", &site.late_refresh(&client)),
        ("access", &given.access),
        ("api", &site.service.token),
        ("code", &site.code(&client)),
        ("other", &site.register(REDIRECT)),
    ];
    for [name, status, expected, changed] in table(WRONG) {
        let before = site.issued();
        let answer = site.exchange(&change(&good, changed, &words));
        assert_eq!(
            answer.status.to_string(),
            status,
            "{name}: {}",
            answer.text()
        );
        assert_eq!(error(&answer), expected, "{name}");
        assert_eq!(site.issued(), before, "{name}");
        assert_eq!(site.opens(&given.access), 200, "{name}");
    }
    assert_eq!(site.exchange(&good).status, 200, "it was good all along");
}

/// Neither more nor less than what was granted.
#[test]
fn who_renews_without_naming_a_scope_keeps_them() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let mut given = site.tokens(&client);
    for scope in ["", "scope=", "scope=offline_access"] {
        let renewal = site.renewal(&client, &given.refresh);
        let renewal = match scope {
            "" => renewal,
            scope => change(&renewal, scope, &[]),
        };
        given = site.given(&renewal);
        assert_eq!(given.answer["scope"], "sms:send sms:rates", "{scope:?}");
    }
}

#[test]
fn a_refresh_token_opens_nothing() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let given = site.tokens(&client);
    assert!(
        given.refresh.starts_with("sbr_"),
        "people can tell them apart"
    );
    let as_access = format!("sb_{}", &given.refresh[4..]);
    for (name, token) in [("as it is", &given.refresh), ("dressed up", &as_access)] {
        assert_eq!(site.opens(token), 401, "{name}");
    }
    assert_eq!(site.opens(&given.access), 200);
}

#[test]
fn a_refresh_token_that_comes_again_ends_the_family() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    for generations in 2..=4 {
        let first = site.tokens(&client);
        let mut last = site.given(&site.renewal(&client, &first.refresh));
        for _ in 1..generations {
            last = site.given(&site.renewal(&client, &last.refresh));
        }
        assert_eq!(site.opens(&last.access), 200);
        let before = site.issued();
        for token in [&first.refresh, &last.refresh, &first.refresh] {
            let answer = site.exchange(&site.renewal(&client, token));
            assert_eq!(error(&answer), "invalid_grant");
        }
        assert_eq!(site.issued(), before);
        wait_for("the newest access token is refused", || {
            (site.opens(&last.access) == 401).then_some(())
        });
    }
}

/// Two processes of one client refresh at the same moment, as they do when they start.
fn refreshes_at_the_same_moment_get_the_same_tokens(backend: Backend) {
    let site = Site::start(backend);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    let renewal = site.renewal(&client, &first.refresh);
    let body = encode(&renewal);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let service = &site.service;
    let answers: Vec<_> = thread::scope(|scope| {
        let ask = || service.raw("POST", "/oauth/token", &headers, body.as_bytes());
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        let answers = asking.into_iter().map(std::thread::ScopedJoinHandle::join);
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
    let given = answers[0].json();
    let text = |name: &str| given[name].as_str().expect(name).to_owned();
    assert_eq!(site.opens(&text("access_token")), 200, "the grant lives");
    site.given(&site.renewal(&client, &text("refresh_token")));
}

on_both_backends!(refreshes_at_the_same_moment_get_the_same_tokens);

#[test]
fn a_refresh_that_is_repeated_late_ends_the_family() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    let renewal = site.renewal(&client, &first.refresh);
    let given = site.given(&renewal);
    let again = site.given(&renewal);
    assert_eq!(
        (&again.access, &again.refresh),
        (&given.access, &given.refresh)
    );
    site.change_stored(
        "UPDATE token SET revoked_us = revoked_us - 11000000 WHERE successor_salt IS NOT NULL",
    );
    let late = site.exchange(&renewal);
    assert_eq!((late.status, error(&late).as_str()), (400, "invalid_grant"));
    wait_for("the access token is refused", || {
        (site.opens(&given.access) == 401).then_some(())
    });
    let renewal = site.renewal(&client, &given.refresh);
    assert_eq!(error(&site.exchange(&renewal)), "invalid_grant");
}

#[test]
fn no_refresh_goes_beyond_the_days_of_a_grant() {
    let site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_OAUTH__GRANT_DAYS", "1")
    });
    let client = site.register(REDIRECT);
    let first = site.tokens(&client);
    // Half an hour is left of the day.
    site.change_stored("UPDATE oauth_grant SET created_us = created_us - 84600000000");
    let given = site.given(&site.renewal(&client, &first.refresh));
    let expires_in = given.answer["expires_in"].as_i64().expect("seconds");
    assert!((1..=1800).contains(&expires_in), "{expires_in}");
    site.change_stored("UPDATE oauth_grant SET created_us = created_us - 1800000000");
    let answer = site.exchange(&site.renewal(&client, &given.refresh));
    assert_eq!(error(&answer), "invalid_grant");
}

#[test]
fn a_client_that_refreshes_without_end_is_slowed_down() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let (mut last, other) = (site.tokens(&client), site.tokens(&client));
    // Few are forgiven while these come, however slow the machine is.
    let slowed = (0..2000).find_map(|_| {
        let answer = site.exchange(&site.renewal(&client, &last.refresh));
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
    site.given(&site.renewal(&client, &other.refresh));
}

#[test]
fn a_token_is_given_back_by_its_own_client_only() {
    let site = Site::start(Backend::Sqlite);
    let (client, other) = (site.register(REDIRECT), site.register(REDIRECT));
    let given = site.tokens(&client);
    let api = site.service.token.clone();
    let good = params(&[("token", &given.access), ("client_id", &client)]);
    let words = [
        ("refresh", given.refresh.as_str()),
        ("other", &other),
        ("api", &api),
    ];
    // Whether there is such a token is not said.
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
        let answer = site.send("/oauth/revoke", &change(&good, changed, &words));
        assert_eq!(
            answer.status.to_string(),
            status,
            "{name}: {}",
            answer.text()
        );
        assert_eq!(site.opens(&given.access), 200, "{name}");
        assert_eq!(site.opens(&api), 200, "{name}");
    }
    let others = params(&[("token", &given.refresh), ("client_id", &other)]);
    assert_eq!(site.send("/oauth/revoke", &others).status, 400);
    let json = [("Content-Type", "application/json")];
    let answer = site.call("POST", "/oauth/revoke", &json, b"{}");
    assert_eq!(answer.status, 400, "JSON");
    assert_eq!(site.call("GET", "/oauth/revoke", &[], b"").status, 405);
    site.given(&site.renewal(&client, &given.refresh));
}

#[test]
fn whoever_guesses_tokens_to_revoke_is_slowed_down() {
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
    assert_eq!(guess(0).status, 200, "nobody learns whether it was there");
    // Few are forgiven while these come, however slow the machine is.
    let slowed = (1..2000).map(guess).find(|answer| answer.status == 429);
    let slowed = slowed.expect("it is slowed down");
    assert!(slowed.header("retry-after").is_some());
}
