//! What the guard permits, by table and by property.

use std::collections::HashMap;
use std::io;

use async_trait::async_trait;
use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

fn url(text: &str) -> CallbackUrl {
    CallbackUrl::parse(text).expect(text)
}

fn nets(texts: &[&str]) -> Guard {
    Guard::new(texts.iter().map(|net| net.parse().expect(net)).collect())
}

fn kind(result: &Result<(), Forbidden>) -> Option<&'static str> {
    match result {
        Ok(()) => None,
        Err(Forbidden::Address { kind, .. } | Forbidden::Name { kind, .. }) => Some(kind),
    }
}

/// Addresses at the edges of every network, and the kind in their refusal; `None`: permitted.
const ADDRESSES: [(&str, Option<&str>); 77] = [
    ("0.0.0.0", Some("unspecified")),
    ("0.255.255.255", Some("unspecified")),
    ("1.0.0.0", None),
    ("8.8.8.8", None),
    ("9.255.255.255", None),
    ("10.0.0.0", Some("private")),
    ("10.255.255.255", Some("private")),
    ("11.0.0.0", None),
    ("100.63.255.255", None),
    ("100.64.0.0", Some("carrier-grade NAT")),
    ("100.100.100.200", Some("carrier-grade NAT")),
    ("100.127.255.255", Some("carrier-grade NAT")),
    ("100.128.0.0", None),
    ("126.255.255.255", None),
    ("127.0.0.0", Some("loopback")),
    ("127.0.0.1", Some("loopback")),
    ("127.255.255.255", Some("loopback")),
    ("128.0.0.0", None),
    ("168.63.129.16", Some("metadata")),
    ("168.63.129.17", None),
    ("169.253.255.255", None),
    ("169.254.0.1", Some("link-local")),
    ("169.254.169.254", Some("link-local")),
    ("169.255.0.0", None),
    ("172.15.255.255", None),
    ("172.16.0.0", Some("private")),
    ("172.31.255.255", Some("private")),
    ("172.32.0.0", None),
    ("192.0.0.1", Some("reserved")),
    ("192.0.0.192", Some("reserved")),
    ("192.0.1.0", None),
    ("192.0.2.1", None),
    ("192.88.99.1", Some("6to4")),
    ("192.167.255.255", None),
    ("192.168.0.0", Some("private")),
    ("192.168.255.255", Some("private")),
    ("192.169.0.0", None),
    ("198.17.255.255", None),
    ("198.18.0.0", Some("benchmarking")),
    ("198.19.255.255", Some("benchmarking")),
    ("198.20.0.0", None),
    ("203.0.113.9", None),
    ("223.255.255.255", None),
    ("224.0.0.1", Some("multicast")),
    ("239.255.255.255", Some("multicast")),
    ("240.0.0.1", Some("reserved")),
    ("255.255.255.255", Some("reserved")),
    ("::", Some("unspecified")),
    ("::1", Some("loopback")),
    ("::2", Some("IPv4-compatible")),
    ("::127.0.0.1", Some("IPv4-compatible")),
    ("::8.8.8.8", Some("IPv4-compatible")),
    ("::ffff:127.0.0.1", Some("IPv4-mapped")),
    ("::ffff:10.0.0.1", Some("IPv4-mapped")),
    ("::ffff:8.8.8.8", Some("IPv4-mapped")),
    ("::ffff:0:127.0.0.1", Some("IPv4-translated")),
    ("64:ff9b::7f00:1", Some("NAT64")),
    ("64:ff9b::808:808", Some("NAT64")),
    ("64:ff9b:1::a00:1", Some("NAT64")),
    ("64:ff9b:1:ffff::1", Some("NAT64")),
    ("100::1", Some("reserved")),
    ("1fff::1", Some("reserved")),
    ("2001::1", Some("Teredo")),
    ("2001:0:7f00:1::", Some("Teredo")),
    ("2001:10::1", Some("reserved")),
    ("2001:1ff:ffff::1", Some("reserved")),
    ("2001:200::1", None),
    ("2001:4860:4860::8888", None),
    ("2002:7f00:1::", Some("6to4")),
    ("2003::1", None),
    ("3fff:ffff::1", None),
    ("4000::1", Some("reserved")),
    ("fc00::1", Some("private")),
    ("fd00:ec2::254", Some("private")),
    ("fe80::1", Some("link-local")),
    ("fec0::1", Some("site-local")),
    ("ff02::1", Some("multicast")),
];

#[test]
fn every_network_is_judged_up_to_its_edges() {
    let guard = Guard::default();
    for (address, wanted) in ADDRESSES {
        let got = kind(&guard.check_address(ip(address)));
        match wanted {
            None => assert_eq!(got, None, "{address}"),
            Some(word) => assert!(got.is_some_and(|k| k.contains(word)), "{address}: {got:?}"),
        }
    }
}

#[test]
fn a_url_is_judged_by_the_address_that_it_means() {
    let guard = Guard::default();
    for (text, wanted) in [
        ("http://8.8.8.8/", None),
        ("http://127.0.0.1/", Some("loopback")),
        ("http://127.1/", Some("loopback")),
        ("http://127.0.0.1./", Some("loopback")),
        ("http://0x7f.1/", Some("loopback")),
        ("http://0X7F000001/", Some("loopback")),
        ("http://2130706433/", Some("loopback")),
        ("http://017700000001/", Some("loopback")),
        ("http://0177.0.0.1/", Some("loopback")),
        ("http://0/", Some("unspecified")),
        ("http://0x0/", Some("unspecified")),
        ("http://127.0.0.1:8080/x?y#z", Some("loopback")),
        ("http:\\\\127.0.0.1\\", Some("loopback")),
        ("http:127.0.0.1", Some("loopback")),
        ("http://127.0.0.1/@8.8.8.8", Some("loopback")),
        ("http://１２７.0.0.1/", Some("loopback")),
        ("http://127。0。0。1/", Some("loopback")),
        ("http://%31%32%37.0.0.1/", Some("loopback")),
        ("http://ⓛocalhost/", Some("loopback")),
        ("http://169.254.169.254/latest/", Some("link-local")),
        ("http://0xa9fea9fe/", Some("link-local")),
        ("http://2852039166/", Some("link-local")),
        ("http://0251.0376.0251.0376/", Some("link-local")),
        ("https://[::1]/", Some("loopback")),
        ("https://[0:0:0:0:0:0:0:1]:443/", Some("loopback")),
        ("http://[::]/", Some("unspecified")),
        ("http://[::ffff:127.0.0.1]/", Some("IPv4-mapped")),
        ("http://[::ffff:7f00:1]/", Some("IPv4-mapped")),
        ("http://[64:ff9b::10.0.0.1]/", Some("NAT64")),
        ("http://[fd00:ec2::254]/", Some("private")),
        ("http://localhost/", Some("loopback")),
        ("http://LocalHost:9000/", Some("loopback")),
        ("http://localhost./", Some("loopback")),
        ("http://a.b.localhost/", Some("loopback")),
        ("http://localhost.example/", None),
        ("http://notlocalhost/", None),
        ("http://example.com/127.0.0.1", None),
    ] {
        let got = kind(&guard.check_url(&url(text)));
        match wanted {
            None => assert_eq!(got, None, "{text}"),
            Some(word) => assert!(got.is_some_and(|k| k.contains(word)), "{text}: {got:?}"),
        }
    }
}

#[test]
fn the_operators_networks_are_permitted_and_no_more() {
    for (allow, address, permitted) in [
        ("127.0.0.0/8", "127.0.0.1", true),
        ("127.0.0.0/8", "::ffff:127.0.0.1", true),
        ("127.0.0.0/8", "::ffff:10.0.0.1", false),
        ("127.0.0.0/8", "::1", false),
        ("127.0.0.0/8", "::127.0.0.1", false),
        ("127.0.0.0/8", "64:ff9b::7f00:1", false),
        ("127.0.0.0/8", "10.0.0.1", false),
        ("10.1.0.0/16", "10.1.255.255", true),
        ("10.1.0.0/16", "10.2.0.0", false),
        ("::1/128", "::1", true),
        ("::1/128", "127.0.0.1", false),
        ("fd00::/8", "fd12::1", true),
        ("0.0.0.0/0", "192.168.1.1", true),
        ("::/0", "fe80::1", true),
        ("::/0", "::ffff:10.0.0.1", false),
        ("::ffff:0:0/96", "::ffff:10.0.0.1", false),
    ] {
        let got = nets(&[allow]).check_address(ip(address)).is_ok();
        assert_eq!(got, permitted, "{address} with {allow}");
    }
}

#[test]
fn localhost_needs_one_of_its_two_addresses() {
    for (allow, permitted) in [
        (&["127.0.0.0/8"][..], true),
        (&["::1/128"], true),
        (&["10.0.0.0/8"], false),
        (&[], false),
    ] {
        let got = nets(allow).check_url(&url("http://localhost/"));
        assert_eq!(got.is_ok(), permitted, "{allow:?}");
    }
    let loopback = Guard::new(Guard::loopback());
    assert_eq!(loopback.check_url(&url("http://[::1]/")), Ok(()));
    assert_eq!(loopback.check_url(&url("http://127.0.0.2/")), Ok(()));
}

/// Knows some names, and hangs for `hanging.example`.
struct FakeResolver(HashMap<&'static str, Vec<&'static str>>);

#[async_trait]
impl Resolve for FakeResolver {
    async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        if host == "hanging.example" {
            std::future::pending::<()>().await;
        }
        let found = self.0.get(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(found.iter().map(|text| ip(text)).collect())
    }
}

fn resolver() -> FakeResolver {
    FakeResolver(HashMap::from([
        ("public.example", vec!["8.8.8.8", "2001:4860::1"]),
        ("inside.example", vec!["10.1.2.3"]),
        ("both.example", vec!["8.8.8.8", "127.0.0.1"]),
        ("mapped.example", vec!["::ffff:8.8.8.8"]),
        ("empty.example", vec![]),
    ]))
}

#[tokio::test(start_paused = true)]
async fn a_name_is_judged_by_all_its_addresses() {
    let guard = Guard::default();
    for (text, refusal) in [
        ("http://public.example/", None),
        ("http://unknown.example/", None),
        ("http://empty.example/", None),
        ("http://hanging.example/", None),
        (
            "http://inside.example/",
            Some("'inside.example' leads to a private address; callbacks cannot reach it"),
        ),
        (
            "http://both.example/",
            Some("'both.example' leads to a loopback address; callbacks cannot reach it"),
        ),
        (
            "http://mapped.example/",
            Some("'mapped.example' leads to an IPv4-mapped address; callbacks cannot reach it"),
        ),
        (
            "http://localhost/",
            Some("'localhost' leads to a loopback address; callbacks cannot reach it"),
        ),
        (
            "http://0x0a000001/",
            Some("10.0.0.1 is a private address; callbacks cannot reach it"),
        ),
    ] {
        let got = guard.check_resolved(&url(text), &resolver()).await;
        let got = got.err().map(|forbidden| forbidden.to_string());
        assert_eq!(got.as_deref(), refusal, "{text}");
    }
}

fn forbidden_v4() -> impl Strategy<Value = Ipv4Addr> {
    (0..FORBIDDEN_V4.len(), any::<u32>()).prop_map(|(index, bits)| {
        let net = FORBIDDEN_V4[index].0;
        Ipv4Addr::from_bits(net.addr().to_bits() | (bits & net.hostmask().to_bits()))
    })
}

proptest! {
    #[test]
    fn a_forbidden_address_is_forbidden_in_every_disguise(v4 in forbidden_v4(), low in any::<u64>()) {
        let guard = Guard::default();
        let [a, b, c, d] = v4.octets();
        let (high, rest) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let six_to_four = (u128::from(0x2002_u16) << 112) | (u128::from(v4.to_bits()) << 80) | u128::from(low);
        for address in [
            IpAddr::V4(v4),
            IpAddr::V6(v4.to_ipv6_mapped()),
            IpAddr::V6(v4.to_ipv6_compatible()),
            IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, rest)),
            IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, rest)),
            IpAddr::V6(Ipv6Addr::from_bits(six_to_four)),
        ] {
            prop_assert!(guard.check_address(address).is_err(), "{}", address);
        }
        for text in [
            format!("http://{v4}/"),
            format!("http://{}/", v4.to_bits()),
            format!("http://0x{:x}/", v4.to_bits()),
            format!("http://0{:o}/", v4.to_bits()),
        ] {
            prop_assert!(guard.check_url(&url(&text)).is_err(), "{}", text);
        }
    }

    #[test]
    fn the_rule_agrees_with_the_standard_library(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from_bits(bits);
        let plainly_inside = v4.is_private()
            || v4.is_loopback()
            || v4.is_link_local()
            || v4.is_multicast()
            || v4.is_broadcast()
            || v4.is_unspecified();
        if plainly_inside {
            prop_assert!(Guard::default().check_address(v4.into()).is_err(), "{}", v4);
        }
    }
}
