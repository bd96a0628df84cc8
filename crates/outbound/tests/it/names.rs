//! Name lookups at a scripted name server.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outbound::{CallbackClient, DnsOptions, DnsResolver, Resolve};
use testkit::{NameServer, Record, TEST_TIMEOUT};

use crate::reach::FORBIDDEN;
use crate::receiver::Receiver;
use crate::setup::{SHORT, deliver, options};

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));
const HOUR_S: u32 = 3600;

fn dns_options(server: &NameServer) -> DnsOptions {
    DnsOptions {
        name_servers: vec![server.address()],
        deadline: TEST_TIMEOUT,
        ..DnsOptions::default()
    }
}

fn server(record: impl Fn(&str) -> Record + Send + 'static) -> NameServer {
    NameServer::start(record).expect("a name server")
}

/// The result of a lookup. Repeats it if it timed out on a slow machine.
async fn look_up(resolver: &DnsResolver, host: &str) -> Result<Vec<IpAddr>, io::ErrorKind> {
    let start = Instant::now();
    loop {
        let found = resolver.resolve(host, 80).await;
        match found.map_err(|error| error.kind()) {
            Err(kind) if kind != io::ErrorKind::NotFound && start.elapsed() < TEST_TIMEOUT => {}
            found => return found,
        }
    }
}

#[tokio::test]
async fn answers_are_remembered_within_bounds() {
    let (found, moved) = (Ok(vec![PUBLIC]), Ok(vec![IpAddr::from([9, 9, 9, 9])]));
    let nothing = Err(io::ErrorKind::NotFound);
    let (long, none) = (Duration::from_hours(1), Duration::ZERO);
    let address = Record::address(PUBLIC);
    let short = Record::Addresses(vec![PUBLIC], 0);
    for (name, record, max_ttl, max_negative_ttl, first, second) in [
        ("remembered", &address, long, none, &found, &found),
        ("not for long", &address, none, long, &found, &moved),
        (
            "for the TTL of its record",
            &short,
            long,
            long,
            &found,
            &moved,
        ),
        (
            "nothing",
            &Record::NoSuchName(HOUR_S),
            none,
            long,
            &nothing,
            &nothing,
        ),
        (
            "nothing, not for long",
            &Record::NoSuchName(HOUR_S),
            long,
            none,
            &nothing,
            &moved,
        ),
    ] {
        let has_moved = Arc::new(AtomicBool::new(false));
        let server = server({
            let (record, has_moved) = (record.clone(), has_moved.clone());
            move |_| {
                if has_moved.load(Ordering::SeqCst) {
                    Record::address([9, 9, 9, 9])
                } else {
                    record.clone()
                }
            }
        });
        let resolver = DnsResolver::new(DnsOptions {
            max_ttl,
            max_negative_ttl,
            ..dns_options(&server)
        });
        assert_eq!(&look_up(&resolver, "a.example.").await, first, "{name}");
        has_moved.store(true, Ordering::SeqCst);
        assert_eq!(&look_up(&resolver, "a.example.").await, second, "{name}");
    }
}

#[tokio::test]
async fn a_lookup_ends_at_its_deadline_and_others_do_not_wait_for_it() {
    let server = server(|name| match name {
        name if name.ends_with("hangs.example") => Record::NoAnswer,
        _ => Record::address(PUBLIC),
    });
    let resolver = Arc::new(DnsResolver::new(dns_options(&server)));
    // More than the limit of concurrent lookups for one domain.
    let hanging: Vec<_> = (0..200)
        .map(|number| {
            let resolver = resolver.clone();
            tokio::spawn(async move {
                let host = format!("{number}.hangs.example.");
                resolver.resolve(&host, 80).await
            })
        })
        .collect();
    assert_eq!(look_up(&resolver, "a.example.").await, Ok(vec![PUBLIC]));
    for lookup in hanging {
        lookup.abort();
    }
    let short = DnsResolver::new(DnsOptions {
        deadline: SHORT,
        ..dns_options(&server)
    });
    let error = short
        .resolve("x.hangs.example.", 80)
        .await
        .expect_err("no answer");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// The address of a name is checked before connecting, cached or not.
#[tokio::test]
async fn only_addresses_from_the_name_server_that_the_guard_permits_are_dialled() {
    let receiver = Receiver::answering_ok().await;
    let server = server(|name| match name {
        "inside.example" => Record::address([10, 0, 0, 1]),
        "both.example" => {
            Record::Addresses(vec![[10, 0, 0, 1].into(), [127, 0, 0, 1].into()], HOUR_S)
        }
        _ => Record::address([127, 0, 0, 1]),
    });
    let mut options = options();
    options.dialer.resolver = Arc::new(DnsResolver::new(dns_options(&server)));
    let client = CallbackClient::new(options);
    let port = receiver.address.port();
    for (host, received) in [
        ("receiver.example", true),
        ("receiver.example", true),
        ("inside.example", false),
        ("both.example", true),
        ("localhost", true),
    ] {
        let start = Instant::now();
        loop {
            let delivery = deliver(&client, &format!("http://{host}:{port}/")).await;
            let reason = delivery.attempt.reason;
            if delivery.received == received && (received || reason == FORBIDDEN) {
                break;
            }
            // On a slow machine the lookup may time out.
            assert!(start.elapsed() < TEST_TIMEOUT, "{host}: {reason}");
        }
    }
    assert_eq!(server.query_count("localhost"), 0, "/etc/hosts knows it");
}
