//! A server as a child process: started, watched until it says where it listens, ended by signal.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// How often a wait looks whether the process is still there.
const POLL: Duration = Duration::from_millis(5);
/// What is kept of the output of a chatty server: the newest half megabyte at least.
const OUTPUT_BYTES: usize = 1 << 20;

/// A running server that has announced its address. Killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    url: String,
    addr: SocketAddr,
    output: Arc<Output>,
}

impl Process {
    /// Starts the command and waits for a line of its output with `listening on http://ADDR` (or
    /// `https`, or `smpp`). The error, when it exits or stays silent instead, holds all that it wrote.
    pub fn start(mut command: Command) -> Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = Arc::new(Output::default());
        let announced = output.capture(&mut child);
        let (url, addr) = match wait_for_address(&mut child, &announced) {
            Ok(found) => found,
            Err(error) => {
                end(&mut child);
                wait_until_closed(&announced);
                return Err(error.context(format!("it wrote:\n{}", output.text())));
            }
        };
        Ok(Self {
            child,
            url,
            addr,
            output,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Scheme and address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it wrote to stdout and stderr so far, lines in the order they came (the oldest are
    /// forgotten after a megabyte).
    pub fn output(&self) -> String {
        self.output.text()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL: no handler runs, nothing is flushed. Returns once the process is gone.
    pub fn kill9(&mut self) {
        end(&mut self.child);
    }

    /// SIGTERM, then waits for the process to end by itself; panics when it does not.
    pub fn terminate(&mut self) -> ExitStatus {
        // The shell's own `kill`, since the standard library only knows SIGKILL.
        let signal = format!("kill -TERM {}", self.pid());
        let sent = Command::new("sh")
            .args(["-c", &signal])
            .status()
            .expect("a shell");
        assert!(sent.success(), "`{signal}` failed: {sent}");
        self.wait()
    }

    /// Waits for the process to end by itself; panics when it does not.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(
                Instant::now() < until,
                "still running; it wrote:\n{}",
                self.output()
            );
            thread::sleep(POLL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Both fail only when the process is already gone and waited for, which is what is wanted.
fn end(child: &mut Child) {
    let _already_gone = child.kill();
    let _already_waited = child.wait();
}

fn wait_for_address(
    child: &mut Child,
    announced: &Receiver<String>,
) -> Result<(String, SocketAddr)> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match announced.recv_timeout(POLL) {
            Ok(url) => {
                let (_, addr) = url.split_once("://").expect("`find_url` looked for it");
                let addr = addr
                    .parse()
                    .with_context(|| format!("not an address: {url}"))?;
                return Ok((url, addr));
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Both pipes are closed: it is ending, and the next look sees how.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL),
        }
        if let Some(status) = child.try_wait()? {
            bail!("the server ended with {status} before it listened");
        }
    }
    bail!("the server did not say `listening on` within {PATIENCE:?}")
}

#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Vec<u8>>,
}

impl Output {
    /// Reads both pipes on threads, so that a full pipe never stops the server. The channel brings
    /// the first address that either announces and is closed when both pipes are.
    fn capture(self: &Arc<Self>, child: &mut Child) -> Receiver<String> {
        let (announce, announced) = mpsc::sync_channel(1);
        if let Some(stdout) = child.stdout.take() {
            self.read_lines(stdout, announce.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            self.read_lines(stderr, announce);
        }
        announced
    }

    fn read_lines(
        self: &Arc<Self>,
        pipe: impl Read + Send + 'static,
        announce: SyncSender<String>,
    ) {
        let output = Arc::clone(self);
        thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            // A read error is the end, too: the pipe of a process that is gone.
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                output.push(&line);
                if let Some(url) = find_url(&String::from_utf8_lossy(&line)) {
                    // Full or closed: the address is known already.
                    let _known = announce.try_send(url.to_owned());
                }
                line.clear();
            }
        });
    }

    fn push(&self, line: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(line);
        if lines.len() > OUTPUT_BYTES {
            let excess = lines.len() - OUTPUT_BYTES / 2;
            lines.drain(..excess);
        }
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }
}

/// A process that has ended may have left lines that the threads have yet to read.
fn wait_until_closed(announced: &Receiver<String>) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if announced.recv_timeout(POLL) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// `http://127.0.0.1:8080` in `… listening on http://127.0.0.1:8080 …`, also inside JSON or colour
/// codes.
fn find_url(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("listening on ")?;
    if !["http", "smpp"]
        .iter()
        .any(|scheme| rest.starts_with(scheme))
    {
        return None;
    }
    let start = line.len() - rest.len();
    let authority = start + line[start..].find("://")? + "://".len();
    let is_address = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']');
    let length = line[authority..]
        .find(|c| !is_address(c))
        .unwrap_or(line.len() - authority);
    Some(line[start..authority + length].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{Process, find_url};
    use std::process::Command;

    #[test]
    fn the_announced_address_is_found() {
        let cases = [
            (
                "plain",
                "listening on http://127.0.0.1:80",
                Some("http://127.0.0.1:80"),
            ),
            (
                "sentence",
                "now listening on http://127.0.0.1:80.\n",
                Some("http://127.0.0.1:80"),
            ),
            (
                "TLS",
                "listening on https://[::1]:443/ now",
                Some("https://[::1]:443"),
            ),
            (
                "JSON",
                r#"{"m":"listening on http://1.2.3.4:5","n":1}"#,
                Some("http://1.2.3.4:5"),
            ),
            (
                "colour",
                "listening on http://1.2.3.4:5\u{1b}[0m",
                Some("http://1.2.3.4:5"),
            ),
            ("other line", "see http://127.0.0.1:80", None),
            ("no address", "listening on httpd", None),
        ];
        for (case, line, expected) in cases {
            assert_eq!(find_url(line), expected, "{case}");
        }
    }

    #[test]
    fn a_command_that_ends_or_is_missing_is_an_error_that_tells_why() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo out; echo oops >&2; exit 3"]);
        let error = format!("{:#}", Process::start(failing).expect_err("it exits"));
        assert!(error.contains("oops") && error.contains("out"), "{error}");

        let error = Process::start(Command::new("no-such-command-here")).expect_err("missing");
        assert!(
            error.to_string().contains("no-such-command-here"),
            "{error}"
        );
    }
}
