//! Fuzzes the guard of outgoing requests. The input is an address as text, or 4 or 16 octets of one.
//!
//! - A permitted address belongs to the public internet, by rules that are repeated here independently.
//! - A host in any notation of an IPv4 address, as the C library parses it, is checked as that address.
//! - The HTTP client parses a permitted URL as the host that was checked.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::CallbackUrl;
use domain::oauth::ClientIdUrl;
use libfuzzer_sys::fuzz_target;
use outbound::Guard;
use url::{Host, Url};

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_reserved = a == 0
        || a >= 240
        || (a == 100 && b & 0xC0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && b & 0xFE == 18)
        || ip == Ipv4Addr::new(168, 63, 129, 16);
    !(is_reserved || ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_multicast())
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        // Only 2000::/3 is in use; within it, 6to4 and Teredo embed an IPv4 address.
        IpAddr::V6(ip) => {
            let [first, second, ..] = ip.segments();
            first & 0xE000 == 0x2000 && first != 0x2002 && !(first == 0x2001 && second < 0x200)
        }
    }
}

/// Parses a host like `inet_aton`: one to four numbers, decimal, octal or hexadecimal, the last of which fills the
/// rest.
fn inet_aton(host: &str) -> Option<Ipv4Addr> {
    let parts = host
        .split('.')
        .map(|part| {
            let hex = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
            let (digits, radix) = match hex {
                Some(hex) => (hex, 16),
                None if part.len() > 1 && part.starts_with('0') => (part, 8),
                None => (part, 10),
            };
            // `from_str_radix` would accept a sign.
            let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit());
            is_number.then(|| u32::from_str_radix(digits, radix).ok())?
        })
        .collect::<Option<Vec<u32>>>()?;
    let (last, head) = parts.split_last()?;
    if head.len() > 3 || head.iter().any(|part| *part > 255) {
        return None;
    }
    let room = 32 - 8 * head.len();
    if u64::from(*last) >= 1_u64 << room {
        return None;
    }
    let head = head
        .iter()
        .enumerate()
        .map(|(i, part)| part << (24 - 8 * i))
        .sum::<u32>();
    Some(Ipv4Addr::from(head | last))
}

fn check_address(guard: &Guard, ip: IpAddr) {
    if guard.check_address(ip).is_ok() {
        assert!(is_public(ip), "{ip}");
    }
}

fn check_url(guard: &Guard, text: &str) {
    let Ok(given) = CallbackUrl::parse(text) else {
        assert!(ClientIdUrl::parse(text).is_err());
        return;
    };
    assert_eq!(given.as_str(), text);
    if let Err(forbidden) = guard.check_url(&given) {
        assert!(forbidden.to_string().chars().count() <= 500);
        return;
    }
    let url = Url::parse(text).expect("it was parsed before");
    match url.host().expect("http and https have a host") {
        Host::Ipv4(ip) => assert!(is_public(ip.into()), "{text}"),
        Host::Ipv6(ip) => assert!(is_public(ip.into()), "{text}"),
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            assert!(
                name != "localhost" && !name.ends_with(".localhost"),
                "{text}"
            );
            assert_eq!(inet_aton(name), None, "{text}");
            assert!(name.parse::<IpAddr>().is_err(), "{text}");
        }
    }
    // The HTTP client parses the URL with another parser.
    let uri = http::Uri::try_from(url.as_str().split('#').next().unwrap_or_default());
    if let Ok(uri) = uri {
        assert_eq!(uri.host(), url.host_str(), "{text}");
        assert_eq!(uri.scheme_str(), Some(url.scheme()), "{text}");
        assert_eq!(uri.port_u16(), url.port(), "{text}");
    }
}

fuzz_target!(|input: &[u8]| {
    let guard = Guard::default();
    if let Ok(octets) = <[u8; 4]>::try_from(input) {
        check_address(&guard, octets.into());
    }
    if let Ok(octets) = <[u8; 16]>::try_from(input) {
        let ip = Ipv6Addr::from(octets);
        check_address(&guard, ip.into());
        let [.., a, b, c, d] = octets;
        check_address(&guard, Ipv4Addr::new(a, b, c, d).to_ipv6_mapped().into());
        check_url(&guard, &format!("http://[{ip}]/"));
    }
    if let Ok(text) = str::from_utf8(input) {
        check_url(&guard, text);
        check_url(&guard, &format!("http://{text}/"));
    }
});
