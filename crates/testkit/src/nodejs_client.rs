//! An SMPP client by others: the package `smpp` for Node.js, run by a script of ours (`crates/testkit/smsc/client.js`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/smsc/client.js");

/// A client that binds at once. Killed on drop.
#[derive(Debug)]
pub struct NodeJsClient {
    child: Child,
    input: ChildStdin,
    events: Arc<Mutex<Vec<Value>>>,
}

impl NodeJsClient {
    /// Binds as a transceiver. Panics if Node.js cannot be started.
    pub fn start(server: SocketAddr, system_id: &str, password: &str) -> Self {
        let mut child = Command::new("node")
            .arg(SCRIPT)
            .args(["--url", &format!("smpp://{server}")])
            .args(["--system-id", system_id, "--password", password])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Node.js, which scripts/node-packages installs");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let events = Arc::new(Mutex::new(Vec::new()));
        let written = events.clone();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("a line of the script");
                let mut events = written.lock().unwrap_or_else(PoisonError::into_inner);
                events.push(event);
            }
        });
        Self {
            child,
            input,
            events,
        }
    }

    /// Sends a request.
    pub fn send(&mut self, command: &str, fields: &Value) {
        let line = json!({"command": command, "fields": fields});
        writeln!(self.input, "{line}").expect("the client runs");
    }

    /// The events of this kind so far, such as `submit_sm_resp` or `deliver_sm`.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = events.iter().filter(|event| event["event"] == kind);
        of_kind.cloned().collect()
    }
}

impl Drop for NodeJsClient {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
