//! Clients that ask and never read, and addresses that open too many connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use testkit::http::{Connection, encode};
use testkit::{Backend, PATIENCE};

use super::service::{Service, wait_for};

/// How often a client that never reads asks on one connection: more than any buffer on the way holds.
const PIPELINED: usize = 400;
const SOCKETS: usize = 60;

/// A service that has room for a few connections, and for as many from one address.
fn start(connections: usize, by_address: usize, write_seconds: u32) -> Service {
    Service::with(Backend::Sqlite, |server| {
        server.config(format!(
            "[limits]\nconnections = {connections}\nconnections_per_address = {by_address}\n\
             write_seconds = {write_seconds}\n"
        ))
    })
}

/// Asks for the largest answer there is, again and again, and reads nothing.
fn ask_without_reading(service: &Service) -> TcpStream {
    let addr = service.server.addr();
    let stream = TcpStream::connect(addr).expect("the service takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_nonblocking(true).expect("it never waits");
    let headers = [("X-Service-Token", service.token.as_str())];
    let request = encode(addr, "GET", "/rates/?format=json", &headers, b"");
    for _ in 0..PIPELINED {
        // What does not go out any more is not needed: the service has enough to write.
        if (&stream).write_all(&request).is_err() {
            break;
        }
    }
    stream.set_nonblocking(false).expect("from now on it waits");
    stream
}

fn counted(service: &Service, metric: &str) -> u64 {
    let addr = service.server.addr();
    let Ok(metrics) = testkit::http::request(addr, "GET", "/metrics", &[], b"") else {
        return 0;
    };
    let text = metrics.text();
    let line = text.lines().find(|line| line.starts_with(metric));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// The status that a caller gets who connects from this address of the machine; `None` when it is not let in.
fn status_from(source: Ipv4Addr, service: &Service) -> Option<u16> {
    let addr = service.server.addr();
    let connect = async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(addr).await?.into_std()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    let mut stream = runtime.block_on(connect).ok()?;
    stream.set_nonblocking(false).expect("it waits");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
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
    // As many as there is room for; with a limit by address they could not even take that.
    let service = start(SOCKETS, SOCKETS, 2);
    let held: Vec<TcpStream> = (0..SOCKETS)
        .map(|_| ask_without_reading(&service))
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
        let cut_off = counted(&service, "switchboard_http_connections_stalled_total");
        (cut_off >= held.len() as u64).then_some(())
    });
    service.check_health();
}

#[test]
fn a_client_that_reads_slowly_gets_its_whole_answer() {
    let service = start(SOCKETS, SOCKETS, 600);
    let mut stream = ask_without_reading(&service);
    let mut bytes = vec![0; 16 * 1024];
    let mut received = 0_usize;
    // Many times what the buffers hold: the writer waits for this reader again and again.
    while received < 20 * 1024 * 1024 {
        let read = stream.read(&mut bytes).expect("it is not cut off");
        assert!(read > 0, "it ended after {received} bytes");
        received += read;
    }
    let stalled = counted(&service, "switchboard_http_connections_stalled_total");
    assert_eq!(stalled, 0);
}

#[test]
fn one_address_leaves_room_for_others() {
    let service = start(SOCKETS, SOCKETS / 4, 600);
    let held: Vec<TcpStream> = (0..SOCKETS)
        .map(|_| ask_without_reading(&service))
        .collect();
    // Another address of this machine is another caller; nobody has to be cut off first.
    let other = Ipv4Addr::new(127, 0, 0, 2);
    assert_eq!(status_from(other, &service), Some(200));
    drop(held);
    wait_for("the address gave its connections back", || {
        status_from(Ipv4Addr::LOCALHOST, &service)
    });
    let refused = counted(&service, "switchboard_http_connections_refused_total");
    assert!(refused >= 40, "{refused}");
    service.check_health();
}

#[test]
fn a_trusted_proxy_brings_the_connections_of_many() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.config(
            "[limits]\nconnections = 40\nconnections_per_address = 2\n\
             [auth]\ntrusted_proxies = ['127.0.0.1/32']\n",
        )
    });
    let addr = service.server.addr();
    let headers = [("X-Service-Token", service.token.as_str())];
    let mut open: Vec<Connection> = (0..20)
        .map(|_| Connection::open(addr).expect("the service takes connections"))
        .collect();
    for connection in &mut open {
        let response = connection.request("GET", "/token", &headers, b"");
        assert_eq!(response.expect("an answer").status, 200);
    }
}
