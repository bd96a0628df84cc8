//! Fuzzes OAuth redirect URIs. The input is a registered and a requested URI, one on each line.
//!
//! - Accepted are `https`, `http` to this machine, and a program's own scheme, without user part and fragment.
//! - The URL standard parses it as it is written, so a browser goes where the person was told.
//! - The code goes to the same scheme, host, port and path.
//! - A registered URI only permits URIs that are equal, or differ in a port on this machine.
#![no_main]

use domain::oauth::RedirectUri;
use libfuzzer_sys::fuzz_target;
use url::{Host, Url};

/// Schemes that a browser handles itself instead of starting a program.
const DANGEROUS: [&str; 12] = [
    "about",
    "blob",
    "data",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "javascript",
    "mailto",
    "tel",
    "view-source",
    "ws",
];

fn is_own_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn check(text: &str) -> Option<(RedirectUri, Url)> {
    let uri = RedirectUri::parse(text).ok()?;
    assert_eq!(uri.as_str(), text);
    let url = Url::parse(text).expect("an address that is taken can be read");
    assert!(
        text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\'),
        "{text}"
    );
    assert!(
        url.username().is_empty() && url.password().is_none(),
        "{text}"
    );
    assert!(url.fragment().is_none(), "{text}");
    assert_eq!(
        url.as_str().trim_end_matches('/'),
        text.trim_end_matches('/')
    );
    match url.scheme() {
        "https" => assert!(url.host().is_some_and(|host| host != Host::Domain(""))),
        "http" => assert!(is_own_machine(&url), "{text}"),
        scheme => assert!(!DANGEROUS.contains(&scheme), "{text}"),
    }
    assert_eq!(uri.is_loopback(), url.scheme() == "http", "{text}");
    assert!(uri.permits(&uri), "{text}");
    let sent = uri.with([("code", "a&b#c"), ("state", "d e")]);
    assert_eq!(place(&sent), place(&url));
    assert!(sent.fragment().is_none());
    let ours: Vec<_> = sent.query_pairs().collect();
    let count = url.query_pairs().count();
    assert_eq!(ours.len(), count + 2, "{sent}");
    assert_eq!(ours[count], ("code".into(), "a&b#c".into()));
    assert_eq!(ours[count + 1], ("state".into(), "d e".into()));
    Some((uri, url))
}

fn place(url: &Url) -> (&str, Option<Host<&str>>, Option<u16>, &str) {
    (url.scheme(), url.host(), url.port(), url.path())
}

fuzz_target!(|input: &str| {
    let (registered, asked) = input.split_once('\n').unwrap_or((input, input));
    let (Some((registered, from)), Some((asked, to))) = (check(registered), check(asked)) else {
        return;
    };
    if registered.permits(&asked) {
        assert!(asked.permits(&registered));
        let same = (from.scheme(), from.host(), from.path(), from.query())
            == (to.scheme(), to.host(), to.path(), to.query());
        assert!(same, "{from} permits {to}");
        assert!(
            from.port() == to.port() || is_own_machine(&from),
            "{from} permits {to}"
        );
    }
});
