//! The `DevTools` protocol: JSON with a zero byte behind it, orders one way, answers and events the other.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::watch::Watch;
use crate::PATIENCE;

type Answer = Result<Value, String>;

/// Both directions. Answers are read on a thread of their own, so that a test that blocks its runtime does not stop the
/// browser.
#[derive(Debug)]
pub(super) struct Pipe {
    input: Mutex<ChildStdin>,
    next: AtomicU64,
    /// `None` when the browser has hung up.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    /// The pages by their session.
    watches: Mutex<HashMap<String, Arc<Watch>>>,
}

impl Pipe {
    pub(super) fn open(input: ChildStdin, output: ChildStdout) -> Arc<Self> {
        let pipe = Arc::new(Self {
            input: Mutex::new(input),
            next: AtomicU64::new(1),
            waiting: Mutex::new(Some(HashMap::new())),
            watches: Mutex::default(),
        });
        let reading = Arc::clone(&pipe);
        thread::Builder::new()
            .name("chromium".into())
            .spawn(move || reading.read_all(output))
            .expect("a thread");
        pipe
    }

    /// Gives an order, to a page or to the browser, and waits for the answer.
    pub(super) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Answer {
        let (tell, told) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        match locked(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, tell),
            None => return Err(format!("{method}: the browser is gone")),
        };
        self.send(id, session, method, params)
            .map_err(|error| format!("{method}: {error}"))?;
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(answer)) => answer.map_err(|error| format!("{method}: {error}")),
            Ok(Err(_)) => Err(format!("{method}: the browser is gone")),
            Err(_) => Err(format!("{method}: no answer for {PATIENCE:?}")),
        }
    }

    /// Gives an order whose answer matters to nobody.
    pub(super) fn tell(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // A browser that is gone needs no orders.
        let _gone = self.send(id, session, method, params);
    }

    /// From now on, events of this session are noted there.
    pub(super) fn watch(&self, session: &str, watch: Arc<Watch>) {
        locked(&self.watches).insert(session.to_owned(), watch);
    }

    pub(super) fn forget(&self, session: &str) {
        locked(&self.watches).remove(session);
    }

    fn send(
        &self,
        id: u64,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> std::io::Result<()> {
        let mut order = json!({ "id": id, "method": method });
        order["params"] = params;
        if let Some(session) = session {
            order["sessionId"] = session.into();
        }
        let mut bytes = order.to_string().into_bytes();
        bytes.push(0);
        let mut input = locked(&self.input);
        input.write_all(&bytes)?;
        input.flush()
    }

    fn read_all(&self, output: ChildStdout) {
        let mut output = BufReader::with_capacity(1 << 16, output);
        let mut message = Vec::new();
        // An error is the end, too: the pipe of a process that is gone.
        while output
            .read_until(0, &mut message)
            .is_ok_and(|count| count > 0)
        {
            message.pop();
            match serde_json::from_slice(&message) {
                Ok(message) => self.take(message),
                Err(error) => eprintln!("chromium wrote what is no JSON: {error}"),
            }
            message.clear();
        }
        // Those who wait learn it from the sender that is dropped.
        *locked(&self.waiting) = None;
    }

    fn take(&self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let waiting = locked(&self.waiting)
                .as_mut()
                .and_then(|waiting| waiting.remove(&id));
            let answer = match message.get("error") {
                Some(error) => Err(error["message"].as_str().unwrap_or("an error").to_owned()),
                None => Ok(message["result"].take()),
            };
            if let Some(tell) = waiting {
                // Whoever asked has given up.
                let _nobody = tell.send(answer);
            }
            return;
        }
        let Some(session) = message["sessionId"].as_str().map(str::to_owned) else {
            return;
        };
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        if method == "Page.javascriptDialogOpening" {
            // Nothing else is answered before the dialog is.
            let accept = json!({ "accept": true });
            self.tell(Some(&session), "Page.handleJavaScriptDialog", accept);
        }
        let watch = locked(&self.watches).get(&session).cloned();
        if let Some(watch) = watch {
            watch.note(&method, &message["params"]);
        }
    }
}

/// A test that panicked elsewhere does not hide what came before.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
