//! Authorization requests that are refused: by an unknown client, to an unknown redirect, or with invalid parameters.
//! RFC 6749, section 4.1.2.1; RFC 7636, section 4.4.1; RFC 8707; RFC 9700, section 4.1.

use testkit::Backend;

use super::site::{
    CHALLENGE, Params, REDIRECT, STATE, Site, change, error, location, query, table, with,
};

/// The error is shown without a redirect, and nothing is stored.
fn assert_no_redirect(site: &Site, name: &str, params: &Params) {
    let before = site.issued();
    let answer = site.authorize(params);
    assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    assert_eq!(answer.header("location"), None, "{name}");
    assert_eq!(error(&answer), "invalid_request", "{name}");
    assert_eq!(site.issued(), before, "{name}");
}

#[test]
fn unregistered_redirects_are_refused() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.authorize_params(&client, REDIRECT);
    for redirect in [
        "https://client.example/cb/",
        "https://client.example/cb/more",
        "https://client.example/CB",
        "https://client.example/cb?next=https://evil.example",
        "https://client.example/cb?",
        "https://client.example/cb#",
        "https://client.example/cb#code",
        "https://client.example/cb%2f..",
        "https://client.example/cb/../evil",
        "https://client.example/x/../cb",
        "https://client.example/./cb",
        "https://client.example/%63b",
        "https://client.example:8443/cb",
        "https://client.example:443/cb",
        "https://client.example./cb",
        "https://CLIENT.example/cb",
        "HTTPS://client.example/cb",
        "http://client.example/cb",
        "https://user@client.example/cb",
        "https://client.example@evil.example/cb",
        "https://client.example:pw@evil.example/cb",
        "https://evil.example/https://client.example/cb",
        "https://evil.example/cb",
        "https://client.example.evil.example/cb",
        "https://evilclient.example/cb",
        "https://sub.client.example/cb",
        "https://evil.example\\@client.example/cb",
        "https://client.example\\.evil.example/cb",
        "//client.example/cb",
        "/cb",
        "cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://127.0.0.1/cb",
        "http://localhost:8080/cb",
        " https://client.example/cb",
        "https://client.example/cb ",
        "https://client.example/cb\r\nSet-Cookie: a=b",
        "https://client.example/cb\0",
        "https://client.example/cb,https://evil.example/cb",
        "https://clıent.example/cb",
    ] {
        assert_no_redirect(&site, redirect, &with(&good, "redirect_uri", redirect));
    }
    location(&site.authorize(&good));
}

#[test]
fn only_loopback_redirects_may_use_any_port() {
    let site = Site::start(Backend::Sqlite);
    for (own, others) in [
        (
            "http://127.0.0.1/cb",
            [
                "http://localhost:9/cb",
                "http://127.0.0.1:9/cb/",
                "http://127.0.0.1:9@evil.example/cb",
            ],
        ),
        (
            "http://[::1]:1234/cb",
            [
                "http://127.0.0.1:1234/cb",
                "http://[::1]:9/",
                "http://[::2]:1234/cb",
            ],
        ),
        (
            "http://localhost/cb",
            [
                "http://localhost.evil.example/cb",
                "http://localhost:99999/cb",
                "https://localhost:9/cb",
            ],
        ),
    ] {
        let client = site.register(own);
        let good = site.authorize_params(&client, own);
        for other in others {
            assert_no_redirect(&site, other, &with(&good, "redirect_uri", other));
        }
        let host = own.trim_end_matches("/cb").trim_end_matches(":1234");
        for port in [1, 80, 8080, 65_535] {
            // A normalised address omits the default port.
            let at = format!("{host}:{port}/cb").replace(":80/", "/");
            location(&site.authorize(&with(&good, "redirect_uri", &at)));
        }
    }
}

const UNIDENTIFIED: &str = "
    no client            | -client_id
    an empty client      | client_id=
    unknown              | client_id=client_0000
    another's            | client_id={other}
    in capitals          | client_id={capitals}
    with a NUL           | client_id={client}\0
    with a space         | client_id={client}%20
    SQL                  | client_id=' OR 1=1 --
    very long            | client_id={long}
    twice                | +client_id={client}
    two of them          | +client_id={other}
    no redirect          | -redirect_uri
    an empty redirect    | redirect_uri=
    redirect twice       | +redirect_uri=https://client.example/cb
    two redirects        | +redirect_uri=https://evil.example/
";

#[test]
fn an_unidentified_client_gets_no_redirect() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.authorize_params(&client, REDIRECT);
    let placeholders = [
        ("client", client.as_str()),
        ("capitals", &client.to_uppercase()),
        ("other", &site.register("https://other.example/cb")),
        ("long", &"c".repeat(5000)),
    ];
    for [name, changed] in table(UNIDENTIFIED) {
        assert_no_redirect(&site, name, &change(&good, changed, &placeholders));
    }
    assert_no_redirect(&site, "no parameters", &Params::new());
    location(&site.authorize(&good));
}

const INVALID: &str = "
    no response type     | invalid_request           | -response_type
    implicit             | unsupported_response_type | response_type=token
    hybrid               | unsupported_response_type | response_type=code token
    in capitals          | unsupported_response_type | response_type=CODE
    in a fragment        | invalid_request           | response_mode=fragment
    by a form            | invalid_request           | response_mode=form_post
    no challenge         | invalid_request           | -code_challenge
    an empty one         | invalid_request           | code_challenge=
    a short one          | invalid_request           | code_challenge={short}
    a long one           | invalid_request           | code_challenge={challenge}A
    a padded one         | invalid_request           | code_challenge={challenge}=
    no base64            | invalid_request           | code_challenge={no base64}
    no method: plain     | invalid_request           | -code_challenge_method
    plain                | invalid_request           | code_challenge_method=plain
    in small letters     | invalid_request           | code_challenge_method=s256
    another method       | invalid_request           | code_challenge_method=S512
    an unknown scope     | invalid_scope             | scope=sms:rates admin
    not for clients      | invalid_scope             | scope=sms:read
    all of them          | invalid_scope             | scope=*
    a foreign resource   | invalid_target            | resource=https://evil.example/mcp
    another path         | invalid_target            | resource={resource}2
    below it             | invalid_target            | resource={resource}/x
    with a fragment      | invalid_target            | resource={resource}#x
    no address           | invalid_target            | resource=mcp
    two resources        | invalid_target            | +resource=https://evil.example/mcp
    scope twice          | invalid_request           | +scope=sms:send
    challenge twice      | invalid_request           | +code_challenge={challenge}
    method twice         | invalid_request           | +code_challenge_method=plain
    type twice           | invalid_request           | +response_type=token
    state twice          | invalid_request           | +state=other
    a state too long     | invalid_request           | state={long}
    without a page       | login_required            | prompt=none
    without and with one | login_required            | prompt=login none
";

/// The cases of [`INVALID`]: name, error code and parameters.
fn invalid_requests(site: &Site, good: &Params) -> Vec<(&'static str, &'static str, Params)> {
    let placeholders = [
        ("challenge", CHALLENGE),
        ("short", &CHALLENGE[1..]),
        ("no base64", &"!".repeat(43)),
        ("resource", &site.resource()),
        ("long", &"s".repeat(2049)),
    ];
    table(INVALID)
        .map(|[name, error, changed]| (name, error, change(good, changed, &placeholders)))
        .collect()
}

/// Anybody can register a client, so a link to this service must not redirect to its page. RFC 9700, section 4.11.
#[test]
fn errors_do_not_redirect_to_an_unknown_client() {
    let site = Site::start(Backend::Sqlite);
    site.service.create_account("second");
    let (known, unknown) = (site.register(REDIRECT), site.register(REDIRECT));
    site.tokens(&known);
    let member = site.signed_in("ann@example.com", "main");
    let stranger = site.signed_in("bob@example.com", "second");
    let (known, unknown) = (
        site.authorize_params(&known, REDIRECT),
        site.authorize_params(&unknown, REDIRECT),
    );
    for (name, code, params) in invalid_requests(&site, &unknown) {
        let before = site.issued();
        let answer = site.authorize(&params);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        assert_eq!(answer.header("location"), None, "{name}");
        assert_eq!(error(&answer), code, "{name}");
        assert_eq!(site.issued(), before, "{name}");
    }
    let wrong = |authorize_params: &Params| with(authorize_params, "response_type", "token");
    for (name, answer) in [
        (
            "an unknown client",
            site.authorize_as(&member, &wrong(&unknown)),
        ),
        (
            "another account's client",
            site.authorize_as(&stranger, &wrong(&known)),
        ),
        ("no session", site.authorize(&wrong(&known))),
        (
            "an invalid session",
            site.authorize_as("guessed", &wrong(&known)),
        ),
    ] {
        assert_eq!(answer.status, 400, "{name}");
        assert_eq!(answer.header("location"), None, "{name}");
    }
    let page = format!("/oauth/authorize?{}", super::site::encode(&wrong(&unknown)));
    let page = site.call("GET", &page, &[("Accept", "text/html")], b"");
    assert_eq!((page.status, page.header("location")), (400, None));
    assert!(
        page.text().contains("Only the response_type code"),
        "{}",
        page.text()
    );
    // A redirect to the person's own machine does not lead to another site.
    let local = "http://127.0.0.1:4711/cb";
    let local = site.authorize_params(&site.register(local), local);
    location(&site.authorize(&wrong(&local)));
}

/// The client gets the error at its redirect, with its state and the issuer. Nothing is stored.
#[test]
fn a_known_client_gets_its_error_by_redirect() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    site.tokens(&client);
    let session = site.signed_in("ann@example.com", "main");
    let good = site.authorize_params(&client, REDIRECT);
    for (name, error, params) in invalid_requests(&site, &good) {
        let before = site.issued();
        let redirect = location(&site.authorize_as(&session, &params));
        let is_error = redirect
            .as_str()
            .starts_with("https://client.example/cb?error=");
        assert!(is_error, "{name}: {redirect}");
        assert_eq!(query(&redirect, "error").as_deref(), Some(error), "{name}");
        assert_eq!(query(&redirect, "iss"), Some(site.issuer()), "{name}");
        let state = (!name.contains("state")).then_some(STATE);
        assert_eq!(query(&redirect, "state").as_deref(), state, "{name}");
        assert_eq!(query(&redirect, "code"), None, "{name}");
        assert_eq!(site.issued(), before, "{name}");
    }
    location(&site.authorize(&change(&good, "-scope", &[])));
}

#[test]
fn authorization_requests_use_get_and_are_limited() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.authorize_params(&client, REDIRECT);
    let before = site.issued();
    for method in ["POST", "PUT", "DELETE"] {
        let path = format!("/oauth/authorize?{}", super::site::encode(&good));
        assert_eq!(site.call(method, &path, &[], b"").status, 405, "{method}");
    }
    assert_eq!(site.issued(), before);
    let path = format!("/oauth/authorize?{}", super::site::encode(&good));
    let same = || site.service.raw("GET", &path, &[], b"");
    let slowed = (0..200).map(|_| same()).find(|answer| answer.status == 429);
    let slowed = slowed.expect("it is slowed down");
    assert!(slowed.header("retry-after").is_some());
    assert_eq!(slowed.header("location"), None);
}
