//! Redemptions of codes that are refused. RFC 6749, sections 3.2 and 4.1.3; RFC 7636, section 4.6; RFC 9700, section
//! 2.1.

use testkit::Backend;
use testkit::http::Response;

use super::site::{CHALLENGE, REDIRECT, Site, VERIFIER, change, encode, error, table};
use crate::rest::service::wait_for;

/// Sends a request that must be refused, and checks that nothing was issued.
fn assert_refused(
    site: &Site,
    name: &str,
    status: u16,
    code: &str,
    send: impl FnOnce() -> Response,
) {
    let before = site.issued();
    let answer = send();
    assert_eq!(answer.status, status, "{name}: {}", answer.text());
    assert_eq!(error(&answer), code, "{name}");
    assert_eq!(site.issued(), before, "{name}");
}

const INVALID: &str = "
    no grant type           | 400 | invalid_request        | -grant_type
    an empty one            | 400 | invalid_request        | grant_type=
    a password              | 400 | unsupported_grant_type | grant_type=password
    credentials             | 400 | unsupported_grant_type | grant_type=client_credentials
    implicit                | 400 | unsupported_grant_type | grant_type=implicit
    in capitals             | 400 | unsupported_grant_type | grant_type=AUTHORIZATION_CODE
    for a refresh token     | 400 | invalid_request        | grant_type=refresh_token
    no code                 | 400 | invalid_request        | -code
    a cut code              | 400 | invalid_grant          | code={cut}
    a longer code           | 400 | invalid_grant          | code={code}A
    a very long code        | 400 | invalid_grant          | code={long}
    a request ID            | 400 | invalid_grant          | code={request}
    an expired code         | 400 | invalid_grant          | code={expired}
    no verifier             | 400 | invalid_request        | -code_verifier
    an empty verifier       | 400 | invalid_request        | code_verifier=
    a short verifier        | 400 | invalid_request        | code_verifier={short}
    a long verifier         | 400 | invalid_request        | code_verifier={verifier}{verifier}{verifier}
    bad letters             | 400 | invalid_request        | code_verifier={verifier}+
    a space                 | 400 | invalid_request        | code_verifier={verifier} x
    another's verifier      | 400 | invalid_grant          | code_verifier={verifier}A
    the challenge itself    | 400 | invalid_grant          | code_verifier={challenge}
    no client               | 401 | invalid_client         | -client_id
    an unknown client       | 401 | invalid_client         | client_id=client_x
    a client with a NUL     | 401 | invalid_client         | client_id={other}\0
    another client          | 400 | invalid_grant          | client_id={other}
    a document's client     | 400 | invalid_grant          | client_id=https://client.example/client.json
    another redirect        | 400 | invalid_grant          | redirect_uri=https://evil.example/
    a slash more            | 400 | invalid_grant          | redirect_uri=https://client.example/cb/
    a foreign resource      | 400 | invalid_target         | resource=https://evil.example/mcp
    a secret                | 401 | invalid_client         | client_secret=x
    an assertion            | 401 | invalid_client         | client_assertion=x
    code twice              | 400 | invalid_request        | +code={code}
    client twice            | 400 | invalid_request        | +client_id={other}
    type twice              | 400 | invalid_request        | +grant_type=refresh_token
    verifier twice          | 400 | invalid_request        | +code_verifier={verifier}
    redirect twice          | 400 | invalid_request        | +redirect_uri=https://evil.example/
    resource twice          | 400 | invalid_request        | +resource=https://evil.example/mcp
";

#[test]
fn a_code_works_only_for_its_own_client_and_request() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let code = site.code(&client);
    let good = site.redeem_params(&client, &code);
    let placeholders = [
        ("code", code.as_str()),
        ("cut", &code[1..]),
        ("long", &"c".repeat(4000)),
        ("expired", &site.expired_code(&client)),
        (
            "request",
            &site.start_request(&site.authorize_params(&client, REDIRECT)),
        ),
        ("verifier", VERIFIER),
        ("short", &VERIFIER[1..]),
        ("challenge", CHALLENGE),
        ("other", &site.register(REDIRECT)),
    ];
    for [name, status, error, changed] in table(INVALID) {
        let status = status.parse().expect("a status");
        assert_refused(&site, name, status, error, || {
            site.exchange(&change(&good, changed, &placeholders))
        });
    }
    let issued = site.exchange(&good).status;
    assert_eq!(issued, 200, "the code itself was valid");
}

/// Method, where the parameters are (`form`, `json` or the `query`), and one more header.
const WRONG_FORMATS: &str = "
    GET             | 405 | invalid_request | GET  | query |
    PUT             | 405 | invalid_request | PUT  | form  | Content-Type: application/x-www-form-urlencoded
    in the address  | 400 | invalid_request | POST | query | Content-Type: application/x-www-form-urlencoded
    JSON            | 400 | invalid_request | POST | json  | Content-Type: application/json
    JSON as a form  | 400 | invalid_request | POST | json  | Content-Type: application/x-www-form-urlencoded
    multipart       | 400 | invalid_request | POST | form  | Content-Type: multipart/form-data; boundary=x
    text            | 400 | invalid_request | POST | form  | Content-Type: text/plain
    no type         | 400 | invalid_request | POST | form  |
    too large       | 400 | invalid_request | POST | large | Content-Type: application/x-www-form-urlencoded
    a password      | 401 | invalid_client  | POST | form  | Authorization: Basic Y2xpZW50OnNlY3JldA==
    a bearer        | 401 | invalid_client  | POST | form  | Authorization: Bearer x
";

#[test]
fn tokens_are_requested_with_a_form_by_post() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.redeem_params(&client, &site.code(&client));
    let form = encode(&good);
    let json: serde_json::Map<_, _> = good
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let json = serde_json::Value::from(json).to_string();
    let large = format!("{form}&x={}", "x".repeat(20_000));
    for [name, status, error, method, params_in, header] in table(WRONG_FORMATS) {
        let (path, body) = match params_in {
            "query" => (format!("/oauth/token?{form}"), ""),
            "json" => ("/oauth/token".to_owned(), json.as_str()),
            "large" => ("/oauth/token".to_owned(), large.as_str()),
            _ => ("/oauth/token".to_owned(), form.as_str()),
        };
        let mut headers: Vec<_> = header.split_once(": ").into_iter().collect();
        if header.starts_with("Authorization") {
            headers.push(("Content-Type", "application/x-www-form-urlencoded"));
        }
        let status = status.parse().expect("a status");
        assert_refused(&site, name, status, error, || {
            site.call(method, &path, &headers, body.as_bytes())
        });
    }
    let issued = site.exchange(&good).status;
    assert_eq!(issued, 200, "the code itself was valid");
}

/// One of the two who used the code has stolen it.
#[test]
fn a_reused_code_revokes_its_tokens() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let placeholders = [("verifier", VERIFIER), ("other", &site.register(REDIRECT))];
    for [name, changed] in table(
        "
        the same            | state=added
        with another proof  | code_verifier={verifier}A
        without a redirect  | -redirect_uri
        by another client   | client_id={other}
        another redirect    | redirect_uri=https://evil.example/
        ",
    ) {
        let good = site.redeem_params(&client, &site.code(&client));
        let issued = site.exchange_ok(&good);
        assert_eq!(site.rest_status(&issued.access), 200, "{name}");
        assert_refused(&site, name, 400, "invalid_grant", || {
            site.exchange(&change(&good, changed, &placeholders))
        });
        wait_for("the access token is refused", || {
            (site.rest_status(&issued.access) == 401).then_some(())
        });
        assert_refused(&site, name, 400, "invalid_grant", || {
            site.exchange(&site.refresh_params(&client, &issued.refresh))
        });
    }
}

#[test]
fn guessing_codes_is_slowed_down() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let guess = |n: i32| {
        let guess = encode(&site.redeem_params(&client, &format!("guess-{n}")));
        let path = "/oauth/token";
        site.service.raw("POST", path, &form, guess.as_bytes())
    };
    let slowed = (0..100).map(guess).find(|answer| answer.status == 429);
    let slowed = slowed.expect("it is slowed down");
    assert!(slowed.header("retry-after").is_some());
    // A valid code still works.
    let good = encode(&site.redeem_params(&client, &site.code(&client)));
    let path = "/oauth/token";
    let issued = site.service.raw("POST", path, &form, good.as_bytes());
    assert_eq!(issued.status, 200, "{}", issued.text());
}
