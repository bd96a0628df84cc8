//! Kannel: its bearerbox, which uses SMPP and has the message store, and its smsbox, which serves HTTP.

use super::RunningGateway;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::load::Requests;
use testkit::{TempDir, http, temp_dir};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Kannel reads its ports only from the configuration, so they are chosen first.
struct Ports {
    admin: SocketAddr,
    boxes: SocketAddr,
    sending: SocketAddr,
}

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_waited = self.0.wait();
    }
}

/// A running Kannel.
pub(crate) struct Kannel {
    bearerbox: Running,
    smsbox: Running,
    sending: SocketAddr,
    _home: TempDir,
}

impl Kannel {
    pub(crate) fn start(smsc: SocketAddr, window: u64, with_spool: bool) -> Result<Self> {
        let home = temp_dir("kannel")?;
        let ports = Ports {
            admin: free_port()?,
            boxes: free_port()?,
            sending: free_port()?,
        };
        let config = home.path().join("kannel.conf");
        let spool = with_spool.then(|| home.path());
        fs::write(&config, configuration(window, &ports, smsc, spool))?;
        if with_spool {
            fs::create_dir(home.path().join("spool"))?;
        }
        let bearerbox = start("bearerbox", &config)?;
        wait_until("bearerbox is connected to the SMSC", || {
            let status = get(ports.admin, "/status.txt?password=bench")?;
            Ok(status.contains("(online"))
        })?;
        let smsbox = start("smsbox", &config)?;
        wait_until("smsbox listens", || {
            Ok(TcpStream::connect(ports.sending).is_ok())
        })?;
        Ok(Self {
            bearerbox,
            smsbox,
            sending: ports.sending,
            _home: home,
        })
    }
}

impl RunningGateway for Kannel {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.sending]
    }

    fn pids(&self) -> Vec<u32> {
        [&self.bearerbox, &self.smsbox]
            .map(|process| process.0.id())
            .to_vec()
    }

    fn requests(&self, addr: SocketAddr, callback_url: &str) -> Requests {
        let url = callback_url.replace(':', "%3A").replace('/', "%2F");
        let path = format!(
            "/cgi-bin/sendsms?username=bench&password=bench&from=Switchboard&to=%2B37120000001\
             &text=Your+code+is+123456.+It+is+valid+for+10+minutes.&dlr-mask=3&dlr-url={url}"
        );
        Requests::Fixed(http::encode(addr, "GET", &path, &[], b""))
    }
}

/// The configuration of its user guide, without logs and with the same window as Switchboard.
fn configuration(window: u64, ports: &Ports, smsc: SocketAddr, spool: Option<&Path>) -> String {
    let store = spool.map_or_else(String::new, |home| {
        let folder = home.join("spool");
        format!(
            "store-type = spool\nstore-location = \"{}\"\n",
            folder.display()
        )
    });
    let (admin, boxes, sending) = (ports.admin.port(), ports.boxes.port(), ports.sending.port());
    let (host, port) = (smsc.ip(), smsc.port());
    format!(
        "group = core\nadmin-port = {admin}\nadmin-password = bench\nsmsbox-port = {boxes}\nlog-level = 4\n\
         box-allow-ip = \"127.0.0.1\"\nadmin-allow-ip = \"127.0.0.1\"\ndlr-storage = internal\n{store}\n\
         group = smsc\nsmsc = smpp\nsmsc-id = bench\nhost = {host}\nport = {port}\nsmsc-username = bench\n\
         smsc-password = bench\nsystem-type = \"\"\ntransceiver-mode = true\nmax-pending-submits = {window}\n\n\
         group = smsbox\nbearerbox-host = 127.0.0.1\nbearerbox-port = {boxes}\nsendsms-port = {sending}\nlog-level = 4\n\n\
         group = sendsms-user\nusername = bench\npassword = bench\nmax-messages = 1\n"
    )
}

fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn start(program: &str, config: &Path) -> Result<Running> {
    let child = Command::new(program)
        .args(["-v", "4"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}; it is in Debian's package kannel"))?;
    Ok(Running(child))
}

fn wait_until(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + START_TIMEOUT;
    while Instant::now() < until {
        if condition().unwrap_or(false) {
            return Ok(());
        }
        thread::sleep(POLL_INTERVAL);
    }
    bail!("waited {START_TIMEOUT:?} until {what}")
}

fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
