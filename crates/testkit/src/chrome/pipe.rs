//! The `DevTools` protocol: JSON messages that end with a zero byte. Commands go one way, answers and events the other.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::monitor::PageMonitor;
use crate::TEST_TIMEOUT;

type Answer = Result<Value, String>;

/// Both directions. A separate thread reads, so that a test that blocks its runtime does not block the browser.
#[derive(Debug)]
pub(super) struct Pipe {
    input: Mutex<ChildStdin>,
    next_id: AtomicU64,
    /// `None` after the browser has closed the pipe.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    /// The monitors of the pages, by session.
    monitors: Mutex<HashMap<String, Arc<PageMonitor>>>,
}

impl Pipe {
    pub(super) fn open(input: ChildStdin, output: ChildStdout) -> Arc<Self> {
        let pipe = Arc::new(Self {
            input: Mutex::new(input),
            next_id: AtomicU64::new(1),
            waiting: Mutex::new(Some(HashMap::new())),
            monitors: Mutex::default(),
        });
        let reading = Arc::clone(&pipe);
        thread::Builder::new()
            .name("chromium".into())
            .spawn(move || reading.read_all(output))
            .expect("a thread starts");
        pipe
    }

    /// Sends a command to a page or to the browser and waits for the answer.
    pub(super) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        match locked(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(format!("{method}: the browser is gone")),
        };
        self.send(id, session, method, params)
            .map_err(|error| format!("{method}: {error}"))?;
        match tokio::time::timeout(TEST_TIMEOUT, receiver).await {
            Ok(Ok(answer)) => answer.map_err(|error| format!("{method}: {error}")),
            Ok(Err(_)) => Err(format!("{method}: the browser is gone")),
            Err(_) => Err(format!("{method}: no answer for {TEST_TIMEOUT:?}")),
        }
    }

    /// Sends a command and ignores its answer.
    pub(super) fn call_without_answer(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // If the browser is gone, the command is not needed.
        let _gone = self.send(id, session, method, params);
    }

    /// Sends the events of this session to a monitor.
    pub(super) fn add_monitor(&self, session: &str, monitor: Arc<PageMonitor>) {
        locked(&self.monitors).insert(session.to_owned(), monitor);
    }

    pub(super) fn remove_monitor(&self, session: &str) {
        locked(&self.monitors).remove(session);
    }

    fn send(
        &self,
        id: u64,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> std::io::Result<()> {
        let mut command = json!({ "id": id, "method": method });
        command["params"] = params;
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        let mut input = locked(&self.input);
        input.write_all(&bytes)?;
        input.flush()
    }

    fn read_all(&self, output: ChildStdout) {
        let mut output = BufReader::with_capacity(1 << 16, output);
        let mut message = Vec::new();
        // A read error means that the process is gone.
        while output
            .read_until(0, &mut message)
            .is_ok_and(|count| count > 0)
        {
            message.pop();
            match serde_json::from_slice(&message) {
                Ok(message) => self.handle(message),
                Err(error) => eprintln!("chromium wrote invalid JSON: {error}"),
            }
            message.clear();
        }
        // Dropping the senders ends the calls that still wait.
        *locked(&self.waiting) = None;
    }

    fn handle(&self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let waiting = locked(&self.waiting)
                .as_mut()
                .and_then(|waiting| waiting.remove(&id));
            let answer = match message.get("error") {
                Some(error) => Err(error["message"].as_str().unwrap_or("an error").to_owned()),
                None => Ok(message["result"].take()),
            };
            if let Some(sender) = waiting {
                // The caller may have given up.
                let _nobody = sender.send(answer);
            }
            return;
        }
        let Some(session) = message["sessionId"].as_str().map(str::to_owned) else {
            return;
        };
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        if method == "Page.javascriptDialogOpening" {
            // The page answers nothing else before the dialog is closed.
            let accept = json!({ "accept": true });
            self.call_without_answer(Some(&session), "Page.handleJavaScriptDialog", accept);
        }
        let monitor = locked(&self.monitors).get(&session).cloned();
        if let Some(monitor) = monitor {
            monitor.handle(&method, &message["params"]);
        }
    }
}

/// Ignores that another test panicked while it held the lock.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
