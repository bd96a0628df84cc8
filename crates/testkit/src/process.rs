//! A server as a child process.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::TEST_TIMEOUT;

/// How often a wait checks whether the process has ended.
const POLL: Duration = Duration::from_millis(5);
/// At most this much output is kept. When it is exceeded, the older half is dropped.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// A running server that has announced its address. Killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    url: String,
    addr: SocketAddr,
    output: Arc<Output>,
}

impl Process {
    /// Starts the command and waits until its output contains `listening on http://ADDR` (or `https`, or `smpp`). If
    /// that does not happen, the error contains the whole output.
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

    /// The output to stdout and stderr so far, at most the last megabyte.
    pub fn output(&self) -> String {
        self.output.text()
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill9(&mut self) {
        end(&mut self.child);
    }

    /// Sends SIGTERM and waits until the process ends; panics if it does not.
    pub fn terminate(&mut self) -> ExitStatus {
        // The standard library can only send SIGKILL, so the shell sends this signal.
        let signal = format!("kill -TERM {}", self.pid());
        let sent = Command::new("sh")
            .args(["-c", &signal])
            .status()
            .expect("a shell starts");
        assert!(sent.success(), "`{signal}` failed: {sent}");
        self.wait()
    }

    /// Waits until the process ends by itself; panics if it does not.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + TEST_TIMEOUT;
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

/// Errors mean that the process has already ended, so they are ignored.
fn end(child: &mut Child) {
    let _already_gone = child.kill();
    let _already_waited = child.wait();
}

fn wait_for_address(
    child: &mut Child,
    announced: &Receiver<String>,
) -> Result<(String, SocketAddr)> {
    let until = Instant::now() + TEST_TIMEOUT;
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
            // Both pipes are closed, so the process is ending. `try_wait` below gets its status.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL),
        }
        if let Some(status) = child.try_wait()? {
            bail!("the server ended with {status} before it listened");
        }
    }
    bail!("the server did not say `listening on` within {TEST_TIMEOUT:?}")
}

#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Vec<u8>>,
}

impl Output {
    /// Reads both pipes on threads, so that a full pipe never blocks the server. The channel gets the first address
    /// that the server announces. It is closed when both pipes are.
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
            // A read error means that the process is gone.
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                output.push(&line);
                if let Some(url) = find_url(&String::from_utf8_lossy(&line)) {
                    // The channel is full or closed when the address is already known.
                    let _known = announce.try_send(url.to_owned());
                }
                line.clear();
            }
        });
    }

    fn push(&self, line: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(line);
        if lines.len() > MAX_OUTPUT_BYTES {
            let excess = lines.len() - MAX_OUTPUT_BYTES / 2;
            lines.drain(..excess);
        }
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }
}

/// Waits until the threads have read all output of a process that has ended.
fn wait_until_closed(announced: &Receiver<String>) {
    let until = Instant::now() + TEST_TIMEOUT;
    while Instant::now() < until {
        if announced.recv_timeout(POLL) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Finds `http://127.0.0.1:8080` in `… listening on http://127.0.0.1:8080 …`, also inside JSON or colour codes.
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
    fn the_error_of_a_command_that_ends_or_is_missing_gives_the_reason() {
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
