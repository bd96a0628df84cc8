//! `bench dashboard`: how soon every page of the dashboard begins to arrive when the store is full.

mod browser;
mod fill;

use crate::options::{neighbour, number};
use anyhow::{Context, Result, bail, ensure};
use browser::Browser;
use std::path::PathBuf;
use std::time::Duration;
use testkit::{Backend, Server};

/// What is measured: pages that an admin of an account sees, then those of an operator. `{message}` is an old message of
/// the account, `{number}` one that it wrote to, `{callback}` one of its reports.
const PAGES: &[(Who, &str)] = &[
    (Who::Admin, "/dashboard"),
    (Who::Admin, "/dashboard/messages"),
    (Who::Admin, "/dashboard/messages?to={number}"),
    (Who::Admin, "/dashboard/messages?to=%2B37129999999"),
    (Who::Admin, "/dashboard/messages?state=failed"),
    (Who::Admin, "/dashboard/messages?state=queued"),
    (Who::Admin, "/dashboard/messages?from=Acme"),
    (Who::Admin, "/dashboard/messages?from=Nobody"),
    (Who::Admin, "/dashboard/messages/{message}"),
    (Who::Admin, "/dashboard/scheduled"),
    (Who::Admin, "/dashboard/callbacks"),
    (Who::Admin, "/dashboard/callbacks/{callback}"),
    (Who::Admin, "/dashboard/send"),
    (Who::Admin, "/dashboard/senders"),
    (Who::Admin, "/dashboard/lookups"),
    (Who::Admin, "/dashboard/numbers"),
    (Who::Admin, "/dashboard/rates"),
    (Who::Admin, "/dashboard/connect"),
    (Who::Admin, "/dashboard/settings/api"),
    (Who::Admin, "/dashboard/settings/people"),
    (Who::Admin, "/dashboard/settings/security"),
    (Who::Admin, "/dashboard/settings/audit"),
    (Who::Operator, "/dashboard/operator/accounts"),
    (Who::Operator, "/dashboard/operator/people"),
    (Who::Operator, "/dashboard/operator/senders"),
    (Who::Operator, "/dashboard/operator/carriers"),
    (Who::Operator, "/dashboard/operator/routes"),
    (Who::Operator, "/dashboard/operator/prices"),
    (Who::Operator, "/dashboard/operator/reference"),
    (Who::Operator, "/dashboard/operator/queues"),
    (Who::Operator, "/dashboard/operator/hosts"),
    (Who::Operator, "/dashboard/operator/nodes"),
    (Who::Operator, "/dashboard/operator/messages/{message}"),
    (Who::Operator, "/dashboard/operator/audit"),
];
const TURNS: usize = 20;
const GOAL: Duration = Duration::from_millis(50);

/// Who looks at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Admin,
    Operator,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
        }
    }
}

/// What a run measures.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    messages: u64,
    only: Option<Backend>,
    switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            messages: 1_000_000,
            only: None,
            switchboard: neighbour()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => options.messages = 20_000,
                "--messages" => options.messages = number(flag, value()?)?.max(1_000),
                "--only" => options.only = Some(crate::deliver::backend(value()?)?),
                "--switchboard" => options.switchboard = PathBuf::from(value()?),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }
}

/// How a page came.
struct Measured {
    status: u16,
    median: Duration,
    worst: Duration,
    bytes: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "Time to the first byte of each page, {} messages in the store, {TURNS} times each; goal {} ms. A page that is \
         not there (404) says nothing.\n",
        options.messages,
        GOAL.as_millis()
    );
    for backend in Backend::ALL {
        if options.only.is_none_or(|only| only == backend) {
            measure(options, backend)?;
        }
    }
    Ok(())
}

fn measure(options: &Options, backend: Backend) -> Result<()> {
    let name = crate::measure::Subject::Switchboard(backend).name();
    eprintln!("{name}: filling …");
    let mut server = Server::builder(&options.switchboard, backend).try_start()?;
    let full = fill::fill(&mut server, options.messages)?;
    eprintln!("{name}: filled with {} messages", options.messages);
    let mut browsers = [
        (Who::Admin, sign_in(&server, Who::Admin)?),
        (Who::Operator, sign_in(&server, Who::Operator)?),
    ];
    println!("| {name} | as | status | median | worst | KiB |\n|---|---|--:|--:|--:|--:|");
    let mut late = 0;
    for (who, page) in PAGES {
        let (_, browser) = browsers
            .iter_mut()
            .find(|(known, _)| known == who)
            .expect("both are signed in");
        let measured = look(browser, &full.path(page))?;
        late += usize::from(measured.status == 200 && measured.worst > GOAL);
        println!(
            "| `{page}` | {} | {} | {} | {} | {} |",
            who.name(),
            measured.status,
            shown(measured.median),
            shown(measured.worst),
            measured.bytes.div_ceil(1024),
        );
    }
    println!("\n{late} pages came later than the goal at their worst.\n");
    Ok(())
}

fn look(browser: &mut Browser, path: &str) -> Result<Measured> {
    let mut times = Vec::with_capacity(TURNS);
    let (mut status, mut bytes) = (0, 0);
    for _ in 0..TURNS {
        let page = browser.time(path)?;
        (status, bytes) = (page.status, page.bytes);
        times.push(page.first_byte);
    }
    times.sort_unstable();
    Ok(Measured {
        status,
        median: times[times.len() / 2],
        worst: times[times.len() - 1],
        bytes,
    })
}

fn shown(time: Duration) -> String {
    let tenths = time.as_micros() / 100;
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

/// Invites somebody, follows the link and sets a password.
fn sign_in(server: &Server, who: Who) -> Result<Browser> {
    let email = format!("{}@example.com", who.name());
    let mut arguments = vec!["invite", "create", "--email", &email, "--role", who.name()];
    if who == Who::Admin {
        arguments.extend(["--account", fill::ACCOUNT]);
    }
    arguments.push("--json");
    let invited = server.cli_json(&arguments);
    let link = invited["link"].as_str().context("no link was printed")?;
    let (_, path) = link.split_once("/dashboard/").context("a strange link")?;
    let mut browser = Browser::new(server.addr());
    browser.get(&format!("/dashboard/{path}"))?;
    browser.submit("correct horse battery staple 27")?;
    // Who is not signed in is led away from every page.
    let status = browser.get("/dashboard/settings/security")?;
    ensure!(
        !(300..400).contains(&status),
        "{email} could not sign in: {status}"
    );
    Ok(browser)
}

#[cfg(test)]
mod tests {
    use super::{Backend, Options, shown};
    use std::time::Duration;

    fn parse(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        let default = parse("").expect("all have defaults");
        assert_eq!((default.messages, default.only), (1_000_000, None));
        let chosen = parse("--quick --only postgres").expect("valid");
        assert_eq!(chosen.messages, 20_000);
        assert_eq!(chosen.only, Some(Backend::Postgres));
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [("--fast", "--fast"), ("--messages x", "\"x\"")] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn times_are_shown_in_tenths_of_a_millisecond() {
        assert_eq!(shown(Duration::from_micros(12_345)), "12.3 ms");
        assert_eq!(shown(Duration::from_micros(50)), "0.0 ms");
    }
}
