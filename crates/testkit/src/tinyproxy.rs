//! A real HTTP proxy: tinyproxy, with a user and a password.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::TEST_TIMEOUT;
use crate::temp_dir::{TempDir, temp_dir};

const POLL: Duration = Duration::from_millis(5);

/// A running proxy on loopback that asks for the user `relay` and the password `hunter2`. Killed on drop.
#[derive(Debug)]
pub struct Tinyproxy {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Tinyproxy {
    /// The password that it asks for.
    pub const PASSWORD: &str = "hunter2";

    /// Starts a proxy that connects to these ports only; none: to all.
    ///
    /// # Panics
    /// If tinyproxy is not installed or does not start.
    pub fn start(ports: &[u16]) -> Self {
        let folder = temp_dir("tinyproxy").expect("a temporary folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        drop(listener);
        let mut settings = format!(
            "Listen 127.0.0.1\nPort {}\nTimeout 600\nMaxClients 100\nAllow 127.0.0.1\nBasicAuth relay {}\nLogLevel Connect\n",
            address.port(),
            Self::PASSWORD
        );
        for port in ports {
            writeln!(settings, "ConnectPort {port}").expect("a string takes everything");
        }
        let file = folder.path().join("tinyproxy.conf");
        fs::write(&file, settings).expect("written");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new("tinyproxy")
            .args(["-d", "-c"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file"))
            .stdout(log)
            .spawn()
            .expect("this needs tinyproxy: apt-get install tinyproxy");
        let mut proxy = Self {
            child,
            address,
            folder,
        };
        proxy.wait_until_ready();
        proxy
    }

    fn wait_until_ready(&mut self) {
        let until = Instant::now() + TEST_TIMEOUT;
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().expect("a child can be waited for");
            assert_eq!(ended, None, "it ended: {}", self.log());
            assert!(Instant::now() < until, "it does not listen: {}", self.log());
            thread::sleep(POLL);
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with these credentials.
    pub fn url(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}", self.address)
    }

    /// Its URL with the right credentials.
    pub fn right_url(&self) -> String {
        self.url("relay", Self::PASSWORD)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}
