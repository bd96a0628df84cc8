//! Questions that go no further: who asks or where the answer goes is not certain, or the client does not ask as it
//! should. RFC 6749, section 4.1.2.1; RFC 7636, section 4.4.1; RFC 8707; RFC 9700, section 4.1.

use testkit::Backend;

use super::site::{
    CHALLENGE, Params, REDIRECT, STATE, Site, change, error, location, query, table, with,
};

/// Nobody is sent anywhere, and nothing is kept.
fn is_shown(site: &Site, name: &str, params: &Params) {
    let before = site.issued();
    let answer = site.authorize(params);
    assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    assert_eq!(answer.header("location"), None, "{name}");
    assert_eq!(error(&answer), "invalid_request", "{name}");
    assert_eq!(site.issued(), before, "{name}");
}

#[test]
fn nobody_is_sent_to_an_address_that_was_not_registered() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.question(&client, REDIRECT);
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
        is_shown(&site, redirect, &with(&good, "redirect_uri", redirect));
    }
    location(&site.authorize(&good));
}

#[test]
fn only_a_program_on_the_same_machine_chooses_its_port() {
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
        let good = site.question(&client, own);
        for other in others {
            is_shown(&site, other, &with(&good, "redirect_uri", other));
        }
        let host = own.trim_end_matches("/cb").trim_end_matches(":1234");
        for port in [1, 80, 8080, 65_535] {
            // The usual port is left out where addresses are written plainly.
            let at = format!("{host}:{port}/cb").replace(":80/", "/");
            location(&site.authorize(&with(&good, "redirect_uri", &at)));
        }
    }
}

const UNCERTAIN: &str = "
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
fn nobody_is_sent_anywhere_for_a_client_that_is_not_certain() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.question(&client, REDIRECT);
    let words = [
        ("client", client.as_str()),
        ("capitals", &client.to_uppercase()),
        ("other", &site.register("https://other.example/cb")),
        ("long", &"c".repeat(5000)),
    ];
    for [name, changed] in table(UNCERTAIN) {
        is_shown(&site, name, &change(&good, changed, &words));
    }
    is_shown(&site, "no question", &Params::new());
    location(&site.authorize(&good));
}

const WRONG: &str = "
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
";

/// What the cases of [`WRONG`] are made of.
fn wrong_questions(site: &Site, good: &Params) -> Vec<(&'static str, &'static str, Params)> {
    let words = [
        ("challenge", CHALLENGE),
        ("short", &CHALLENGE[1..]),
        ("no base64", &"!".repeat(43)),
        ("resource", &site.resource()),
        ("long", &"s".repeat(2049)),
    ];
    table(WRONG)
        .map(|[name, error, changed]| (name, error, change(good, changed, &words)))
        .collect()
}

/// Anybody can register a client: a link to this service must not lead to a page of theirs. RFC 9700, section 4.11.
#[test]
fn nobody_is_sent_to_a_client_that_they_do_not_know() {
    let site = Site::start(Backend::Sqlite);
    site.service.create_account("second");
    let (known, fresh) = (site.register(REDIRECT), site.register(REDIRECT));
    site.tokens(&known);
    let member = site.signed_in("ann@example.com", "main");
    let stranger = site.signed_in("bob@example.com", "second");
    let (known, fresh) = (
        site.question(&known, REDIRECT),
        site.question(&fresh, REDIRECT),
    );
    for (name, code, params) in wrong_questions(&site, &fresh) {
        let before = site.issued();
        let answer = site.authorize(&params);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        assert_eq!(answer.header("location"), None, "{name}");
        assert_eq!(error(&answer), code, "{name}");
        assert_eq!(site.issued(), before, "{name}");
    }
    let wrong = |question: &Params| with(question, "response_type", "token");
    for (name, answer) in [
        ("a fresh client", site.authorize_as(&member, &wrong(&fresh))),
        (
            "another account's client",
            site.authorize_as(&stranger, &wrong(&known)),
        ),
        ("no session", site.authorize(&wrong(&known))),
        (
            "a session that is none",
            site.authorize_as("guessed", &wrong(&known)),
        ),
    ] {
        assert_eq!(answer.status, 400, "{name}");
        assert_eq!(answer.header("location"), None, "{name}");
    }
    let page = format!("/oauth/authorize?{}", super::site::encode(&wrong(&fresh)));
    let page = site.call("GET", &page, &[("Accept", "text/html")], b"");
    assert_eq!((page.status, page.header("location")), (400, None));
    assert!(
        page.text().contains("Only the response_type code"),
        "{}",
        page.text()
    );
    // A program on the person's own machine is nobody else's page.
    let local = "http://127.0.0.1:4711/cb";
    let local = site.question(&site.register(local), local);
    location(&site.authorize(&wrong(&local)));
}

/// The client is told at its own address, with its state and the server's name; nothing is kept.
#[test]
fn a_client_that_asks_wrongly_is_told_so() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    site.tokens(&client);
    let session = site.signed_in("ann@example.com", "main");
    let good = site.question(&client, REDIRECT);
    for (name, error, params) in wrong_questions(&site, &good) {
        let before = site.issued();
        let back = location(&site.authorize_as(&session, &params));
        let told = back
            .as_str()
            .starts_with("https://client.example/cb?error=");
        assert!(told, "{name}: {back}");
        assert_eq!(query(&back, "error").as_deref(), Some(error), "{name}");
        assert_eq!(query(&back, "iss"), Some(site.issuer()), "{name}");
        let state = (!name.contains("state")).then_some(STATE);
        assert_eq!(query(&back, "state").as_deref(), state, "{name}");
        assert_eq!(query(&back, "code"), None, "{name}");
        assert_eq!(site.issued(), before, "{name}");
    }
    location(&site.authorize(&change(&good, "-scope", &[])));
}

#[test]
fn a_question_is_asked_with_get_and_not_too_often() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.question(&client, REDIRECT);
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
