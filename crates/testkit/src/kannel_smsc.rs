//! The SMSC that comes with the tests of Kannel: `drive_smpp` of Debian's package kannel-extras.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use crate::temp_dir::{TempDir, temp_dir};

const PROGRAM: &str = "/usr/lib/kannel/test/drive_smpp";
/// It also connects to this port, where it expects Kannel; the port cannot be chosen.
const KANNEL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 13001);

/// A running SMSC that delivers texts as soon as a receiver binds: `1`, `2` and so on, each with a meaningless TLV
/// `receipted_message_id`. It knows transmitters and receivers, but no transceivers. Only one can run at a time. Killed
/// on drop.
#[derive(Debug)]
pub struct KannelSmsc {
    child: Child,
    folder: TempDir,
    _kannel: TcpListener,
}

impl KannelSmsc {
    pub const SENDER: &str = "456";
    pub const RECIPIENT: &str = "123";

    /// Starts it on this address of loopback.
    ///
    /// # Panics
    /// If it is not installed, or if the port of Kannel is in use.
    pub fn start(address: SocketAddr, texts: u32) -> Self {
        let kannel = TcpListener::bind(KANNEL).expect("port 13001 is free");
        let folder = temp_dir("kannel").expect("a temporary folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(PROGRAM)
            .args(["-p", &address.port().to_string()])
            .args(["-m", &texts.to_string()])
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file"))
            .stdout(log)
            .spawn()
            .expect("this needs drive_smpp: apt-get install kannel-extras");
        Self {
            child,
            folder,
            _kannel: kannel,
        }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for KannelSmsc {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}
