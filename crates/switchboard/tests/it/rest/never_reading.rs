//! Clients that send requests and never read the answers, and addresses that open too many connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use testkit::http::{Connection, encode};
use testkit::{Backend, TEST_TIMEOUT};

use super::service::{Service, connect_from, wait_for};

/// Requests on one connection of a client that never reads. Their answers fill every buffer on the way.
const PIPELINED: usize = 400;
const SOCKETS: usize = 60;

/// A service with these limits for connections.
fn start(connections: usize, per_address: usize, write_seconds: u32) -> Service {
    Service::with(Backend::Sqlite, |server| {
        server.config(format!(
            "[limits]\nconnections = {connections}\nconnections_per_address = {per_address}\n\
             write_seconds = {write_seconds}\n"
        ))
    })
}

/// Requests the largest answer many times and reads nothing.
fn request_without_reading(service: &Service) -> TcpStream {
    let addr = service.server.addr();
    let stream = TcpStream::connect(addr).expect("the service accepts connections");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("a timeout");
    stream.set_nonblocking(true).expect("a socket");
    let headers = [("X-Service-Token", service.token.as_str())];
    let request = encode(addr, "GET", "/rates/?format=json", &headers, b"");
    for _ in 0..PIPELINED {
        // When nothing more can be sent, the service already has enough to write.
        if (&stream).write_all(&request).is_err() {
            break;
        }
    }
    stream.set_nonblocking(false).expect("a socket");
    stream
}

fn metric_value(service: &Service, metric: &str) -> u64 {
    let addr = service.server.addr();
    let Ok(metrics) = testkit::http::request(addr, "GET", "/metrics", &[], b"") else {
        return 0;
    };
    let text = metrics.text();
    let line = text.lines().find(|line| line.starts_with(metric));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// The status for a caller at this local address, or `None` if its connection is refused.
fn status_from(source: Ipv4Addr, service: &Service) -> Option<u16> {
    let addr = service.server.addr();
    let mut stream = connect_from(source, addr).ok()?;
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("a timeout");
    let token = service.token.as_str();
    let headers = [("X-Service-Token", token), ("Connection", "close")];
    let request = encode(addr, "GET", "/token", &headers, b"");
    stream.write_all(&request).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1)?.parse().ok()
}

#[test]
fn clients_that_never_read_do_not_lock_others_out() {
    // They take all connections. The limit by address, which would prevent that, is the same here.
    let service = start(SOCKETS, SOCKETS, 2);
    let held: Vec<TcpStream> = (0..SOCKETS)
        .map(|_| request_without_reading(&service))
        .collect();
    let answer = wait_for("another caller gets in", || {
        let addr = service.server.addr();
        let mut connection = Connection::open(addr).ok()?;
        let headers = [("X-Service-Token", service.token.as_str())];
        connection
            .request("GET", "/token", &headers, b"")
            .ok()
            .map(|response| response.status)
    });
    assert_eq!(answer, 200);
    wait_for("all of them are cut off", || {
        let cut_off = metric_value(&service, "switchboard_http_connections_stalled_total");
        (cut_off >= held.len() as u64).then_some(())
    });
    service.check_health();
}

#[test]
fn a_client_that_reads_slowly_gets_its_whole_answer() {
    let service = start(SOCKETS, SOCKETS, 600);
    let mut stream = request_without_reading(&service);
    let mut bytes = vec![0; 16 * 1024];
    let mut received = 0_usize;
    // Many times what the buffers hold, so the writer often waits for this reader.
    while received < 20 * 1024 * 1024 {
        let read = stream.read(&mut bytes).expect("it is not cut off");
        assert!(read > 0, "it ended after {received} bytes");
        received += read;
    }
    let stalled = metric_value(&service, "switchboard_http_connections_stalled_total");
    assert_eq!(stalled, 0);
}

#[test]
fn one_address_leaves_connections_for_others() {
    let service = start(SOCKETS, SOCKETS / 4, 600);
    let held: Vec<TcpStream> = (0..SOCKETS)
        .map(|_| request_without_reading(&service))
        .collect();
    // Another local address counts as another caller, and gets in without others being cut off.
    let other = Ipv4Addr::new(127, 0, 0, 2);
    assert_eq!(status_from(other, &service), Some(200));
    drop(held);
    wait_for("the connections of the address are closed", || {
        status_from(Ipv4Addr::LOCALHOST, &service)
    });
    let refused = metric_value(&service, "switchboard_http_connections_refused_total");
    assert!(refused >= 40, "{refused}");
    service.check_health();
}

#[test]
fn the_limit_by_address_does_not_apply_to_a_trusted_proxy() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.config(
            "[limits]\nconnections = 40\nconnections_per_address = 2\n\
             [auth]\ntrusted_proxies = ['127.0.0.1/32']\n",
        )
    });
    let addr = service.server.addr();
    let headers = [("X-Service-Token", service.token.as_str())];
    let mut open: Vec<Connection> = (0..20)
        .map(|_| Connection::open(addr).expect("the service accepts connections"))
        .collect();
    for connection in &mut open {
        let response = connection.request("GET", "/token", &headers, b"");
        assert_eq!(response.expect("an answer").status, 200);
    }
}
