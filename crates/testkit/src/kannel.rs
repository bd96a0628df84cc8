//! Kannel as a client of an SMPP server: its bearerbox, which uses SMPP and has the message store, and its smsbox, which
//! serves HTTP. Debian's package kannel has both.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::temp_dir::{TempDir, temp_dir};

const START_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How Kannel connects.
#[derive(Debug, Clone, Copy)]
pub struct KannelOptions<'a> {
    /// It has one session with each of them, all of one provider.
    pub servers: &'a [SocketAddr],
    pub system_id: &'a str,
    pub password: &'a str,
    /// The maximum number of unanswered `submit_sm` of a session.
    pub window: u64,
    /// Whether accepted messages are also stored in files.
    pub with_spool: bool,
}

/// Kannel reads its ports only from the configuration, so they are chosen first.
struct Ports {
    admin: SocketAddr,
    boxes: SocketAddr,
    sending: SocketAddr,
}

/// A process that is killed on drop.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_waited = self.0.wait();
    }
}

/// A running Kannel.
#[derive(Debug)]
pub struct Kannel {
    bearerbox: Running,
    smsbox: Running,
    sending: SocketAddr,
    _home: TempDir,
}

impl Kannel {
    /// Starts it and waits until all its sessions are bound.
    pub fn start(options: &KannelOptions<'_>) -> Result<Self> {
        let home = temp_dir("kannel")?;
        let ports = Ports {
            admin: free_port()?,
            boxes: free_port()?,
            sending: free_port()?,
        };
        let config = home.path().join("kannel.conf");
        let spool = options.with_spool.then(|| home.path());
        fs::write(&config, configuration(options, &ports, spool))?;
        if options.with_spool {
            fs::create_dir(home.path().join("spool"))?;
        }
        let bearerbox = start("bearerbox", &config)?;
        wait_until("bearerbox is connected to the SMSC", || {
            let status = get(ports.admin, "/status.txt?password=bench")?;
            Ok(status.matches("(online").count() == options.servers.len())
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

    /// Where it accepts messages by HTTP.
    pub fn addr(&self) -> SocketAddr {
        self.sending
    }

    pub fn pids(&self) -> [u32; 2] {
        [&self.bearerbox, &self.smsbox].map(|process| process.0.id())
    }

    /// The path of a request to send a message, with a call to `report_url` when it is delivered or has failed. Kannel
    /// replaces `%d` in that URL by 1 or 2.
    pub fn sending_path(to: &str, report_url: &str) -> String {
        let encode = |text: &str| {
            let text = text.replace('%', "%25").replace(':', "%3A");
            text.replace('/', "%2F").replace('+', "%2B")
        };
        let (to, url) = (encode(to), encode(report_url));
        format!(
            "/cgi-bin/sendsms?username=bench&password=bench&from=Switchboard&to={to}\
             &text=Your+code+is+123456.+It+is+valid+for+10+minutes.&dlr-mask=3&dlr-url={url}"
        )
    }
}

/// The configuration of its user guide, without logs. Sessions with the same `smsc-id` share receipts.
fn configuration(options: &KannelOptions<'_>, ports: &Ports, spool: Option<&Path>) -> String {
    let store = spool.map_or_else(String::new, |home| {
        let folder = home.join("spool");
        format!(
            "store-type = spool\nstore-location = \"{}\"\n",
            folder.display()
        )
    });
    let (admin, boxes, sending) = (ports.admin.port(), ports.boxes.port(), ports.sending.port());
    let mut text = format!(
        "group = core\nadmin-port = {admin}\nadmin-password = bench\nsmsbox-port = {boxes}\nlog-level = 4\n\
         box-allow-ip = \"127.0.0.1\"\nadmin-allow-ip = \"127.0.0.1\"\ndlr-storage = internal\n{store}\n\
         group = smsbox\nbearerbox-host = 127.0.0.1\nbearerbox-port = {boxes}\nsendsms-port = {sending}\nlog-level = 4\n\n\
         group = sendsms-user\nusername = bench\npassword = bench\nmax-messages = 1\n"
    );
    for server in options.servers {
        let (host, port, window) = (server.ip(), server.port(), options.window);
        let (system_id, password) = (options.system_id, options.password);
        write!(
            text,
            "\ngroup = smsc\nsmsc = smpp\nsmsc-id = bench\nhost = {host}\nport = {port}\n\
             smsc-username = \"{system_id}\"\nsmsc-password = \"{password}\"\nsystem-type = \"\"\n\
             transceiver-mode = true\nmax-pending-submits = {window}\nreconnect-delay = 1\n"
        )
        .expect("a string takes everything");
    }
    text
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
        thread::sleep(POLL_INTERVAL); // tidy: between two looks at a state that has a deadline
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
