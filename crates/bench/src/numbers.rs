//! `bench numbers`: corrections compared with Google's library for Python, lookups, and cached answers compared with a
//! bare handler that has the same bytes.

mod lists;
mod report;

use crate::{measure, options};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::load::{self, Load, Report, Requests, RunLimit};
use testkit::{Backend, Process, Server, http, temp_dir};

pub(crate) use lists::NumberList;

const NUMBERS_PER_REQUEST: usize = 1000;
/// Enough to keep client and server busy.
const CORRECTION_CONNECTIONS: usize = 4;
const CACHED_CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_secs(1);

/// The settings of a run.
pub(crate) struct Options {
    seconds: u64,
    switchboard: PathBuf,
    /// A Python that has the package `phonenumbers`.
    python: PathBuf,
    table: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut found = Self {
            seconds: 8,
            switchboard: options::default_binary()?,
            python: "python3".into(),
            table: "crates/numbering/oracle/corrections.csv".into(),
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => found.seconds = 2,
                "--seconds" => found.seconds = options::number(flag, value()?)?.max(1),
                "--switchboard" => found.switchboard = value()?.into(),
                "--python" => found.python = value()?.into(),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        found.switchboard = std::path::absolute(&found.switchboard)?;
        Ok(found)
    }
}

/// The results for one list of numbers.
pub(crate) struct CorrectionResult {
    name: &'static str,
    numbers: usize,
    python: u64,
    process: InProcessResult,
    http: Report,
}

impl CorrectionResult {
    /// Corrections a second over HTTP.
    fn over_http(&self) -> u64 {
        self.http.rate() * NUMBERS_PER_REQUEST as u64
    }
}

/// Rates of one process, without HTTP.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InProcessResult {
    corrections: u64,
    corrections_on_all_cores: u64,
    lookups: u64,
    load_us: u64,
}

/// The results for an answer that the service caches, and for the same bytes from the bare handler.
pub(crate) struct CachedResult {
    path: &'static str,
    bytes: usize,
    bare: Report,
    service: Report,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        options.switchboard.exists(),
        "no switchboard binary at {}; build it first",
        options.switchboard.display()
    );
    let server = Server::builder(&options.switchboard, Backend::Sqlite)
        .arg("--roles")
        .arg("api")
        .try_start()?;
    let token = measure::create_account(&server, measure::ACCOUNT)?;
    let folder = temp_dir("bench-numbers")?;
    let corrections = NumberList::read_both(&options.table)?
        .iter()
        .map(|list| measure_corrections(options, &server, &token, folder.path(), list))
        .collect::<Result<Vec<_>>>()?;
    let cached = ["/rates/", "/prefixes/US"]
        .into_iter()
        .map(|path| measure_cached(options, &server, &token, folder.path(), path))
        .collect::<Result<Vec<_>>>()?;
    print!(
        "{}",
        report::markdown(options.seconds, &corrections, &cached)
    );
    Ok(())
}

fn measure_corrections(
    options: &Options,
    server: &Server,
    token: &str,
    folder: &Path,
    list: &NumberList,
) -> Result<CorrectionResult> {
    eprintln!("{}: {} numbers …", list.name, list.items.len());
    let file = folder.join("list.tsv");
    std::fs::write(&file, list.lines())?;
    let seconds = options.seconds.to_string();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/numbers/phonenumbers_speed.py"
    );
    let python = output(
        Command::new(&options.python)
            .arg(script)
            .arg(&file)
            .arg(&seconds),
    )
    .context(
        "this needs a Python with the package phonenumbers; `scripts/bench numbers` installs it",
    )?;
    let speed = env::current_exe()?.with_file_name("examples").join("speed");
    let process = output(Command::new(speed).arg(&file).arg(&seconds))?;
    let requests = list.requests(server.addr(), token, NUMBERS_PER_REQUEST);
    let generate = move |number: u64, buffer: &mut Vec<u8>| {
        let index = usize::try_from(number).unwrap_or_default() % requests.len();
        buffer.extend_from_slice(&requests[index]);
    };
    let measured = CorrectionResult {
        name: list.name,
        numbers: list.items.len(),
        python: python
            .trim()
            .parse()
            .context("the script printed no rate")?,
        process: serde_json::from_str(&process)?,
        http: load::run(
            server.addr(),
            timed(
                options,
                CORRECTION_CONNECTIONS,
                Requests::Generated(Box::new(generate)),
            ),
        ),
    };
    eprintln!(
        "  {} a second over HTTP, Python {}",
        measured.over_http(),
        measured.python
    );
    Ok(measured)
}

fn measure_cached(
    options: &Options,
    server: &Server,
    token: &str,
    folder: &Path,
    path: &'static str,
) -> Result<CachedResult> {
    eprintln!("{path} …");
    let headers = [("X-Service-Token", token), ("Accept", "application/json")];
    let answer = http::request(server.addr(), "GET", path, &headers, b"")?;
    ensure!(answer.status == 200, "{path} answered {}", answer.status);
    let body = folder.join("body.json");
    std::fs::write(&body, &answer.body)?;
    let mut command = Command::new(env::current_exe()?);
    command.arg("bare").arg(&body);
    let bare = Process::start(command)?;
    let measure = |addr: SocketAddr| {
        let request = http::encode(addr, "GET", path, &headers, b"");
        load::run(
            addr,
            timed(options, CACHED_CONNECTIONS, Requests::Fixed(request)),
        )
    };
    Ok(CachedResult {
        path,
        bytes: answer.body.len(),
        bare: measure(bare.addr()),
        service: measure(server.addr()),
    })
}

fn timed(options: &Options, connections: usize, requests: Requests) -> Load {
    Load {
        connections,
        warm_up: WARM_UP,
        limit: RunLimit::Elapsed(Duration::from_secs(options.seconds)),
        requests,
        on_answer: None,
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
