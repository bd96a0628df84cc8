//! A running service with its first account, and the checks that hold for every answer.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use jiff::tz::Offset;
use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::{Backend, Server, ServerBuilder, TEST_TIMEOUT};
use tokio::net::TcpSocket;
use tokio::runtime::Builder;

/// The path of another program to test, such as a release build, relative to the top of the repository. By default, it
/// is the one that cargo built with the tests.
const OTHER_BINARY: &str = "BINARY_UNDER_TEST";
const POLL: Duration = Duration::from_millis(10);

/// The program under test.
pub(crate) fn binary() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = env!("CARGO_BIN_EXE_switchboard");
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        env::var_os(OTHER_BINARY).map_or_else(|| own.into(), |other| top.join(other))
    });
    &BINARY
}

/// Connects from this local address, which the service counts as another caller.
pub(crate) fn connect_from(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let connect = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(address).await?.into_std()
    };
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(connect)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Polls until there is a value.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < until, "timed out waiting for: {what}");
        thread::sleep(POLL); // tidy: between two looks at a state that has a deadline
    }
}

/// A running service.
pub(crate) struct Service {
    pub(crate) server: Server,
    /// The first account's token, which may do everything.
    pub(crate) token: String,
}

/// A token that was created on the command line.
pub(crate) struct NewToken {
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Service {
    pub(crate) fn start(backend: Backend) -> Self {
        Self::with(backend, |builder| builder)
    }

    /// A service with other settings.
    pub(crate) fn with(
        backend: Backend,
        configure: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let server = configure(Server::builder(binary(), backend)).start();
        let token = wait_for("the first start's welcome", || first_token(&server));
        Self { server, token }
    }

    /// Sends one request on its own connection, with nothing added.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        http::request(self.server.addr(), method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends one request with a token, and checks the answer with [`check`].
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Response {
        self.call_with(token, method, path, &[], body)
    }

    /// [`Service::call_as`] with more headers.
    pub(crate) fn call_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut headers = vec![("X-Service-Token", token)];
        let typed = more
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !body.is_empty() && !typed {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend_from_slice(more);
        let response = self.raw(method, path, &headers, body);
        check(&format!("{method} {path}"), &response);
        response
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.call_as(&self.token, "GET", path, b"")
    }

    pub(crate) fn delete(&self, path: &str) -> Response {
        self.call_as(&self.token, "DELETE", path, b"")
    }

    /// `POST /sms`.
    pub(crate) fn send(&self, body: &Value) -> Response {
        self.call_as(&self.token, "POST", "/sms", body.to_string().as_bytes())
    }

    /// Sends a message that must be accepted, and returns its IDs.
    pub(crate) fn accept(&self, body: &Value) -> Vec<String> {
        let response = self.send(body);
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        ids(&response)
    }

    /// The scheduled messages of an account.
    pub(crate) fn scheduled_as(&self, token: &str) -> Vec<Value> {
        let response = self.call_as(token, "GET", "/sms?scheduled", b"");
        assert_eq!(response.status, 200, "{}", response.text());
        response.json().as_array().expect("a list").clone()
    }

    /// What the first account can spend.
    pub(crate) fn balance(&self) -> String {
        let token = self.get("/token").json();
        token["balance"].as_str().expect("an amount").to_owned()
    }

    /// How many messages the service has stored, by its metrics.
    pub(crate) fn stored(&self) -> u64 {
        let metrics = self.raw("GET", "/metrics", &[], b"").text();
        let counted = metrics
            .lines()
            .filter(|line| line.starts_with("switchboard_messages_accepted_total{"))
            .filter_map(|line| line.rsplit(' ').next());
        counted
            .map(|count| count.parse::<u64>().expect("a number"))
            .sum()
    }

    /// Creates an account with a balance of 50.00, and returns a token with every permission.
    pub(crate) fn create_account(&self, name: &str) -> String {
        let create = [
            "account",
            "create",
            "--name",
            name,
            "--balance",
            "50",
            "--json",
        ];
        self.server.cli_json(&create);
        self.create_token(name, &[]).token
    }

    pub(crate) fn create_token(&self, account: &str, more: &[&str]) -> NewToken {
        let mut arguments = vec!["token", "create", "--account", account, "--json"];
        arguments.extend_from_slice(more);
        let created = self.server.cli_json(&arguments);
        NewToken {
            id: created["id"].to_string(),
            token: created["token"].as_str().expect("a token").to_owned(),
        }
    }

    /// The service still works and nothing in it has panicked.
    pub(crate) fn check_health(&self) {
        let ready = self.raw("GET", "/health/ready", &[], b"");
        assert_eq!((ready.status, ready.text().as_str()), (200, "ready\n"));
        let output = self.server.output();
        assert!(!output.contains("panic"), "{output}");
    }
}

/// The token that the first start prints, once all of its text is there.
fn first_token(server: &Server) -> Option<String> {
    let output = server.output();
    // Log lines may appear between the lines of the welcome, so only single lines are matched.
    output.contains("Reference: ").then_some(())?;
    let token = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("sb_"));
    token.map(str::to_owned)
}

/// Checks what holds for every answer of the API: it is not cached, it is traceable, and an error is an object with one
/// message.
pub(crate) fn check(context: &str, response: &Response) {
    let shown = || format!("{context}: {} {}", response.status, response.text());
    assert_eq!(
        response.header("cache-control"),
        Some("no-cache"),
        "{}",
        shown()
    );
    let traceable = response
        .header("x-request-id")
        .is_some_and(|id| !id.is_empty());
    assert!(traceable, "no request ID: {}", shown());
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}: {}", shown());
    }
    let policy = response
        .header("content-security-policy")
        .unwrap_or_default();
    assert!(policy.contains("frame-ancestors 'none'"), "{}", shown());
    assert!(response.status < 500, "{}", shown());
    if response.status >= 400 && !response.body.is_empty() {
        assert_eq!(
            response.header("content-type"),
            Some("application/json"),
            "{}",
            shown()
        );
        let body = response.json();
        let text = body["message"].as_str().unwrap_or_default();
        assert_eq!(body, json!({ "message": text }), "{}", shown());
        assert!(text.ends_with('.') && text.len() > 10, "{}", shown());
    }
}

/// The message of an error answer.
pub(crate) fn message(response: &Response) -> String {
    let body = response.json();
    body["message"]
        .as_str()
        .unwrap_or_else(|| panic!("no message: {body}"))
        .to_owned()
}

/// The IDs of an accepted submission, which are strings.
pub(crate) fn ids(response: &Response) -> Vec<String> {
    let body = response.json();
    let list = body.as_array().unwrap_or_else(|| panic!("no list: {body}"));
    list.iter()
        .map(|id| id.as_str().expect("an ID is a string").to_owned())
        .collect()
}

/// A body that is accepted.
pub(crate) fn sms() -> Value {
    json!({ "to": "+37120000001", "from": "Acme", "message": "Hello" })
}

/// [`sms`] with fields added or replaced.
pub(crate) fn sms_with(fields: &Value) -> Value {
    let mut body = sms();
    let fields = fields.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    body
}

/// A time this many seconds from now, without a fraction.
pub(crate) fn in_seconds(seconds: i64) -> Timestamp {
    let now = Timestamp::from_second(SystemClock.now().as_second()).expect("in range");
    now + SignedDuration::from_secs(seconds)
}

/// A time as in a request, with this offset in hours.
pub(crate) fn with_offset(time: Timestamp, hours: i8) -> String {
    let zone = Offset::from_hours(hours)
        .expect("a real offset")
        .to_time_zone();
    time.to_zoned(zone)
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// A time as in an answer.
pub(crate) fn utc(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A time far enough ahead for a message to stay in the scheduled list.
pub(crate) fn tomorrow() -> String {
    with_offset(in_seconds(24 * 3600), 0)
}
