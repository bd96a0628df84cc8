//! Connections through an HTTP proxy: a tunnel by `CONNECT` for each origin, for http and https alike.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

use super::{DialProblem, Target};

/// The maximum size of the head of the proxy's answer.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// A broken proxy breaks every callback, so its failures are logged at most this often.
const LOGGED_EVERY: Duration = Duration::from_mins(1);

/// The proxy that connections are made through. Its password is never shown.
#[derive(Clone)]
pub struct HttpProxy {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
    logged_at: Arc<Mutex<Option<Instant>>>,
}

/// Host and port.
impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", in_brackets(&self.host), self.port)
    }
}

impl HttpProxy {
    /// Reads `http://[user:password@]host:port`. The error is a text for people, without the URL.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "write http://host:port, or http://user:password@host:port with % escapes for special characters";
        let url = Url::parse(text).map_err(|_| FORM)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if url.scheme() != "http" || !is_bare {
            return Err(FORM);
        }
        let host = url.host_str().ok_or(FORM)?;
        let user = percent_decode_str(url.username());
        let password = percent_decode_str(url.password().unwrap_or_default());
        let has_user = !url.username().is_empty() || url.password().is_some();
        let authorization = has_user.then(|| {
            let pair: Vec<u8> = user.chain([b':']).chain(password).collect();
            format!("Basic {}", BASE64_STANDARD.encode(pair))
        });
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default().ok_or(FORM)?,
            authorization,
            logged_at: Arc::default(),
        })
    }

    /// The proxy itself, as a host to connect to.
    pub(super) fn target(&self) -> Target<'_> {
        Target {
            host: &self.host,
            port: self.port,
            is_tls: false,
        }
    }

    /// Asks the proxy for a tunnel to `target`.
    pub(super) async fn open_tunnel(
        &self,
        stream: &mut TcpStream,
        target: &Target<'_>,
    ) -> Result<(), DialProblem> {
        let sent = stream.write_all(self.request(target).as_bytes()).await;
        sent.map_err(|error| DialProblem::ProxyDown(error.kind().to_string()))?;
        let mut head = Vec::with_capacity(512);
        loop {
            match read_head(&head)? {
                Head::Incomplete => {}
                Head::Connected => return Ok(()),
                Head::Refused(status) => return Err(DialProblem::ProxyRefused(status)),
            }
            match stream.read_buf(&mut head).await {
                Ok(0) => {
                    return Err(DialProblem::ProxyDown(
                        "it closed the connection".to_owned(),
                    ));
                }
                Ok(_) => {}
                Err(error) => return Err(DialProblem::ProxyDown(error.kind().to_string())),
            }
        }
    }

    fn request(&self, target: &Target<'_>) -> String {
        let authority = format!("{}:{}", in_brackets(target.host), target.port);
        let authorization = self
            .authorization
            .as_ref()
            .map_or_else(String::new, |value| {
                format!("Proxy-Authorization: {value}\r\n")
            });
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n")
    }

    /// Logs a failure of the proxy itself. Callers of the service do not see its address, so operators find it here.
    pub(super) fn log(&self, problem: &DialProblem) {
        let is_its_own = matches!(
            problem,
            DialProblem::ProxyDown(_) | DialProblem::ProxyRefused(_) | DialProblem::ProxyAnswer
        );
        let mut logged_at = self
            .logged_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_recent = logged_at.is_some_and(|at| at.elapsed() < LOGGED_EVERY);
        if !is_its_own || is_recent {
            return;
        }
        *logged_at = Some(Instant::now());
        drop(logged_at);
        tracing::warn!(proxy = %self, %problem, "a callback could not be sent through callbacks.proxy");
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    Incomplete,
    Connected,
    Refused(u16),
}

/// Reads what has arrived of the proxy's answer. The receiver says nothing before it is asked, so nothing may follow a
/// success.
fn read_head(bytes: &[u8]) -> Result<Head, DialProblem> {
    let Some(line_end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return incomplete(bytes);
    };
    let status = read_status(&bytes[..line_end]).ok_or(DialProblem::ProxyAnswer)?;
    if !(200..300).contains(&status) {
        return Ok(Head::Refused(status));
    }
    match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        None => incomplete(bytes),
        Some(end) if end + 4 == bytes.len() => Ok(Head::Connected),
        Some(_) => Err(DialProblem::ProxyAnswer),
    }
}

fn incomplete(bytes: &[u8]) -> Result<Head, DialProblem> {
    if bytes.len() < MAX_HEAD_BYTES {
        Ok(Head::Incomplete)
    } else {
        Err(DialProblem::ProxyAnswer)
    }
}

/// The status in `HTTP/1.1 200 Connection established`.
fn read_status(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?;
    let digits = rest.strip_prefix(['0', '1'])?.strip_prefix(' ')?.get(..3)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

fn in_brackets(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_from_a_url() {
        for (text, address, authorization) in [
            ("http://proxy.example:3128", "proxy.example:3128", None),
            ("http://proxy.example", "proxy.example:80", None),
            ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080", None),
            (
                "http://Aladdin:open%20sesame@10.0.0.1:3128",
                "10.0.0.1:3128",
                Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ),
            ("http://user@proxy:1", "proxy:1", Some("Basic dXNlcjo=")),
        ] {
            let proxy = HttpProxy::parse(text).expect(text);
            assert_eq!(proxy.to_string(), address, "{text}");
            assert_eq!(proxy.authorization.as_deref(), authorization, "{text}");
        }
        for text in [
            "",
            "proxy.example:3128",
            "https://proxy.example:3128",
            "socks5://proxy.example:1080",
            "http://proxy.example:3128/path",
            "http://proxy.example:3128?x",
            "http://user:hunter2@:3128",
            "http://proxy:99999",
        ] {
            let error = HttpProxy::parse(text).map(|proxy| proxy.to_string());
            let error = error.expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_answer_of_a_proxy_is_read_strictly() {
        let long = "x".repeat(MAX_HEAD_BYTES);
        for (text, expected) in [
            ("", Ok(Head::Incomplete)),
            ("HTTP/1.1 20", Ok(Head::Incomplete)),
            ("HTTP/1.1 200 OK\r\n", Ok(Head::Incomplete)),
            ("HTTP/1.1 200 OK\r\nVia: x\r\n\r\n", Ok(Head::Connected)),
            ("HTTP/1.0 200 \r\n\r\n", Ok(Head::Connected)),
            ("HTTP/1.1 407 Who are you?\r\n", Ok(Head::Refused(407))),
            ("HTTP/1.1 502\r\n\r\n<html>", Ok(Head::Refused(502))),
            ("HTTP/1.1 200 OK\r\n\r\nmore", Err(DialProblem::ProxyAnswer)),
            ("HTTP/2 200 OK\r\n\r\n", Err(DialProblem::ProxyAnswer)),
            ("HTTP/1.1 2x0 OK\r\n\r\n", Err(DialProblem::ProxyAnswer)),
            ("SSH-2.0-x\r\n", Err(DialProblem::ProxyAnswer)),
            (&long, Err(DialProblem::ProxyAnswer)),
        ] {
            let shown = &text[..text.len().min(40)];
            assert_eq!(read_head(text.as_bytes()), expected, "{shown:?}");
        }
    }

    #[test]
    fn a_tunnel_is_asked_for_by_name() {
        let proxy = HttpProxy::parse("http://a:b@proxy:3128").expect("a proxy");
        let target = |host| Target {
            host,
            port: 443,
            is_tls: true,
        };
        let request = proxy.request(&target("receiver.example"));
        let start = "CONNECT receiver.example:443 HTTP/1.1\r\nHost: receiver.example:443\r\n";
        assert!(request.starts_with(start), "{request}");
        assert!(request.ends_with("\r\nProxy-Authorization: Basic YTpi\r\n\r\n"));
        let request = proxy.request(&target("2001:db8::1"));
        assert!(
            request.starts_with("CONNECT [2001:db8::1]:443 "),
            "{request}"
        );
    }
}
