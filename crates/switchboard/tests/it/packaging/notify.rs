//! What the service tells the service manager, read from a socket as systemd reads it.

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use testkit::http;
use testkit::{Backend, TEST_TIMEOUT, TempDir, temp_dir};

use crate::faults::signal;
use crate::rest::service::Service;

/// A sign of life every 100 ms.
const WATCHDOG_USEC: &str = "400000";

/// The manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
    /// What `NOTIFY_SOCKET` says.
    name: String,
    _folder: TempDir,
}

impl Manager {
    fn on_path() -> Self {
        let folder = temp_dir("notify").expect("a temporary folder");
        let path = folder.path().join("socket");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self::new(socket, path.display().to_string(), folder)
    }

    fn on_abstract_name() -> Self {
        let folder = temp_dir("notify").expect("a temporary folder");
        let name = folder.path().display().to_string();
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Self::new(socket, format!("@{name}"), folder)
    }

    fn new(socket: UnixDatagram, name: String, folder: TempDir) -> Self {
        let timeout = socket.set_read_timeout(Some(TEST_TIMEOUT));
        timeout.expect("a timeout");
        Self {
            socket,
            name,
            _folder: folder,
        }
    }

    fn start(&self, variables: &[(&str, &str)]) -> Service {
        Service::with(Backend::Sqlite, |builder| {
            let builder = builder.env("NOTIFY_SOCKET", &self.name);
            let set = |builder: testkit::ServerBuilder, (name, value): &(&str, &str)| {
                builder.env(*name, *value)
            };
            variables.iter().fold(builder.config(""), set)
        })
    }

    /// The next message.
    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..length].to_vec()).expect("text")
    }

    /// The messages that wait to be read.
    fn waiting(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).expect("set");
        let mut messages = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    messages.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.socket.set_nonblocking(false).expect("set");
        messages
    }
}

fn monotonic_micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

#[test]
fn ready_reloading_and_stopping_are_announced() {
    for manager in [Manager::on_path(), Manager::on_abstract_name()] {
        let mut service = manager.start(&[]);
        let ready = format!("READY=1\nSTATUS=listening on {}", service.server.url(""));
        assert_eq!(manager.next(), ready);
        let answer = http::request(service.server.addr(), "GET", "/health/ready", &[], b"");
        assert_eq!(answer.expect("it listens").status, 200);

        let before = monotonic_micros();
        signal::send("HUP", service.server.pid());
        let reloading = manager.next();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        let time: i64 = time.expect("a time").parse().expect("a number");
        assert!(before <= time && time <= monotonic_micros(), "{reloading}");
        assert_eq!(
            manager.next(),
            "READY=1\nSTATUS=the configuration was reloaded"
        );

        let file = service.server.data_dir().with_file_name("switchboard.toml");
        fs::write(file, "nonsense = true").expect("written");
        signal::send("HUP", service.server.pid());
        assert!(manager.next().starts_with("RELOADING=1"));
        let failed = "READY=1\nSTATUS=the last reload failed; the log says why";
        assert_eq!(manager.next(), failed);

        assert!(service.server.terminate().success());
        assert_eq!(manager.next(), "STOPPING=1\nSTATUS=stopping");
        assert!(manager.waiting().is_empty());
    }
}

#[test]
fn the_watchdog_hears_from_the_service() {
    let manager = Manager::on_path();
    let mut service = manager.start(&[("WATCHDOG_USEC", WATCHDOG_USEC)]);
    assert!(manager.next().starts_with("READY=1"));
    for _ in 0..3 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    assert!(service.server.terminate().success());

    let others = [("WATCHDOG_USEC", WATCHDOG_USEC), ("WATCHDOG_PID", "1")];
    let manager = Manager::on_path();
    let mut service = manager.start(&others);
    assert!(service.server.terminate().success());
    let told = manager.waiting();
    assert!(
        !told.iter().any(|text| text.contains("WATCHDOG")),
        "{told:?}"
    );
}

#[test]
fn a_socket_that_nobody_reads_does_not_keep_the_service_from_starting() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("NOTIFY_SOCKET", "/nonexistent/socket")
    });
    assert_eq!(service.get("/token").status, 200);
}
