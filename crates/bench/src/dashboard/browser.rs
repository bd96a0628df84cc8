//! A minimal browser that can sign in and measures times.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testkit::http::{self, Response};

const FORM: &str = "application/x-www-form-urlencoded";
/// Longer than any page takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// It stores cookies and the last page.
pub(super) struct Browser {
    addr: SocketAddr,
    cookies: BTreeMap<String, String>,
    path: String,
    page: String,
}

/// The result of a measured request.
pub(super) struct TimedPage {
    pub(super) status: u16,
    pub(super) first_byte: Duration,
    pub(super) bytes: usize,
}

impl Browser {
    pub(super) fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            cookies: BTreeMap::new(),
            path: String::new(),
            page: String::new(),
        }
    }

    /// Opens a page.
    pub(super) fn get(&mut self, path: &str) -> Result<u16> {
        let answer = self.request("GET", path, "")?;
        path.clone_into(&mut self.path);
        self.page = answer.text();
        Ok(answer.status)
    }

    /// Submits the first form in the main part of the last page, with all password fields filled in.
    pub(super) fn submit(&mut self, password: &str) -> Result<()> {
        let (_, main) = self.page.split_once("<main").context("not a page")?;
        let (_, form) = main.split_once("<form").context("a page without a form")?;
        let form = form.split("</form>").next().unwrap_or(form);
        let (head, _) = form.split_once('>').context("an incomplete form")?;
        let action = attribute(head, "action").unwrap_or_else(|| self.path.clone());
        let mut fields = Vec::new();
        for input in form.split("<input ").skip(1) {
            let input = input.split('>').next().unwrap_or(input);
            let Some(name) = attribute(input, "name") else {
                continue;
            };
            let value = match attribute(input, "type").as_deref() {
                Some("password") => password.replace(' ', "+"),
                _ => attribute(input, "value").unwrap_or_default(),
            };
            fields.push(format!("{name}={}", value.replace('@', "%40")));
        }
        let answer = self.request("POST", &action, &fields.join("&"))?;
        ensure!(
            answer.status == 303,
            "the form was answered {}: {}",
            answer.status,
            answer.text()
        );
        Ok(())
    }

    /// Opens a page on a new connection and measures the time to its first byte.
    pub(super) fn time(&mut self, path: &str) -> Result<TimedPage> {
        let cookies = self.cookie_header();
        let headers = [("Cookie", cookies.as_str()), ("Connection", "close")];
        let request = http::encode(self.addr, "GET", path, &headers, b"");
        let mut stream = TcpStream::connect(self.addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let began = Instant::now();
        stream.write_all(&request)?;
        let mut answer = vec![0];
        stream.read_exact(&mut answer)?;
        let first_byte = began.elapsed();
        stream.read_to_end(&mut answer)?;
        let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(TimedPage {
            status: status.with_context(|| format!("unexpected answer: {line}"))?,
            first_byte,
            bytes: answer.len(),
        })
    }

    fn request(&mut self, method: &str, path: &str, body: &str) -> Result<Response> {
        let cookies = self.cookie_header();
        let mut headers = vec![("Cookie", cookies.as_str())];
        if method == "POST" {
            headers.push(("Content-Type", FORM));
        }
        let answer = http::request(self.addr, method, path, &headers, body.as_bytes())?;
        let set = answer.headers.iter();
        for (_, cookie) in set.filter(|(name, _)| name == "set-cookie") {
            let pair = cookie.split(';').next().unwrap_or(cookie);
            let (name, value) = pair
                .split_once('=')
                .context("unexpected form of a cookie")?;
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        Ok(answer)
    }

    fn cookie_header(&self) -> String {
        let pairs = self.cookies.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("; ")
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, value) = tag.split_once(&format!("{name}=\""))?;
    value.split('"').next().map(str::to_owned)
}
