//! `bench dashboard`: the time to the first byte of every page of the dashboard with a full database.

mod browser;
mod fill;
pub(crate) mod start;

use crate::options::{backend, backends, default_binary, number};
use anyhow::{Context, Result, bail, ensure};
use browser::Browser;
use std::path::PathBuf;
use std::time::Duration;
use testkit::{Backend, Server};

/// The measured pages of an admin of an account and of an operator. `{message}` is an old message of the account,
/// `{number}` one of its recipients, `{callback}` one of its callbacks.
const PAGES: &[(Role, &str)] = &[
    (Role::Admin, "/dashboard"),
    (Role::Admin, "/dashboard/messages"),
    (Role::Admin, "/dashboard/messages?to={number}"),
    (Role::Admin, "/dashboard/messages?to=%2B37129999999"),
    (Role::Admin, "/dashboard/messages?state=failed"),
    (Role::Admin, "/dashboard/messages?state=queued"),
    (Role::Admin, "/dashboard/messages?from=Acme"),
    (Role::Admin, "/dashboard/messages?from=Nobody"),
    (Role::Admin, "/dashboard/messages/{message}"),
    (Role::Admin, "/dashboard/inbox"),
    (
        Role::Admin,
        "/dashboard/inbox/conversation?number=%2B37120000009&handset={number}",
    ),
    (Role::Admin, "/dashboard/scheduled"),
    (Role::Admin, "/dashboard/callbacks"),
    (Role::Admin, "/dashboard/callbacks/{callback}"),
    (Role::Admin, "/dashboard/send"),
    (Role::Admin, "/dashboard/senders"),
    (Role::Admin, "/dashboard/lookups"),
    (Role::Admin, "/dashboard/numbers"),
    (Role::Admin, "/dashboard/rates"),
    (Role::Admin, "/dashboard/connect"),
    (Role::Admin, "/dashboard/settings/api"),
    (Role::Admin, "/dashboard/settings/people"),
    (Role::Admin, "/dashboard/settings/security"),
    (Role::Admin, "/dashboard/settings/audit"),
    (Role::Operator, "/dashboard/operator/accounts"),
    (Role::Operator, "/dashboard/operator/people"),
    (Role::Operator, "/dashboard/operator/senders"),
    (Role::Operator, "/dashboard/operator/numbers"),
    (Role::Operator, "/dashboard/operator/smpp-users"),
    (Role::Operator, "/dashboard/operator/unclaimed"),
    (Role::Operator, "/dashboard/operator/carriers"),
    (Role::Operator, "/dashboard/operator/routes"),
    (Role::Operator, "/dashboard/operator/prices"),
    (Role::Operator, "/dashboard/operator/reference"),
    (Role::Operator, "/dashboard/operator/queues"),
    (Role::Operator, "/dashboard/operator/hosts"),
    (Role::Operator, "/dashboard/operator/nodes"),
    (Role::Operator, "/dashboard/operator/messages/{message}"),
    (Role::Operator, "/dashboard/operator/audit"),
];
const REQUESTS_PER_PAGE: usize = 20;
const GOAL: Duration = Duration::from_millis(50);

/// The role of the person who opens a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Admin,
    Operator,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
        }
    }
}

/// The settings of a run.
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
            switchboard: default_binary()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => options.messages = 20_000,
                "--messages" => options.messages = number(flag, value()?)?.max(1_000),
                "--only" => options.only = Some(backend(value()?)?),
                "--switchboard" => options.switchboard = PathBuf::from(value()?),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }
}

/// The result for one page.
struct PageTimes {
    status: u16,
    median: Duration,
    worst: Duration,
    bytes: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "Time to the first byte of each page, {} messages in the database, {REQUESTS_PER_PAGE} requests each; goal {} ms. \
         Pages that return 404 do not count.\n",
        options.messages,
        GOAL.as_millis()
    );
    for backend in backends(options.only) {
        measure(options, backend)?;
    }
    Ok(())
}

fn measure(options: &Options, backend: Backend) -> Result<()> {
    let name = crate::measure::Subject::Switchboard(backend).name();
    eprintln!("{name}: filling …");
    let mut server = Server::builder(&options.switchboard, backend).try_start()?;
    let database = fill::fill(&mut server, options.messages)?;
    eprintln!("{name}: filled with {} messages", options.messages);
    let mut browsers = [
        (Role::Admin, sign_in(&server, Role::Admin)?),
        (Role::Operator, sign_in(&server, Role::Operator)?),
    ];
    println!("| {name} | as | status | median | worst | KiB |\n|---|---|--:|--:|--:|--:|");
    let mut late = 0;
    for (role, page) in PAGES {
        let (_, browser) = browsers
            .iter_mut()
            .find(|(known, _)| known == role)
            .expect("both roles are signed in");
        let measured = measure_page(browser, &database.path(page))?;
        late += usize::from(measured.status == 200 && measured.worst > GOAL);
        println!(
            "| `{page}` | {} | {} | {} | {} | {} |",
            role.name(),
            measured.status,
            shown(measured.median),
            shown(measured.worst),
            measured.bytes.div_ceil(1024),
        );
    }
    println!("\nThe slowest request of {late} pages exceeded the goal.\n");
    Ok(())
}

fn measure_page(browser: &mut Browser, path: &str) -> Result<PageTimes> {
    let mut times = Vec::with_capacity(REQUESTS_PER_PAGE);
    let (mut status, mut bytes) = (0, 0);
    for _ in 0..REQUESTS_PER_PAGE {
        let page = browser.time(path)?;
        (status, bytes) = (page.status, page.bytes);
        times.push(page.first_byte);
    }
    times.sort_unstable();
    Ok(PageTimes {
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

/// Creates an invitation, follows its link and sets a password.
fn sign_in(server: &Server, role: Role) -> Result<Browser> {
    let email = format!("{}@example.com", role.name());
    let mut arguments = vec!["invite", "create", "--email", &email, "--role", role.name()];
    if role == Role::Admin {
        arguments.extend(["--account", fill::ACCOUNT]);
    }
    arguments.push("--json");
    let invited = server.cli_json(&arguments);
    let link = invited["link"].as_str().context("no link was printed")?;
    let (_, path) = link
        .split_once("/dashboard/")
        .context("unexpected form of the link")?;
    let mut browser = Browser::new(server.addr());
    browser.get(&format!("/dashboard/{path}"))?;
    browser.submit("correct horse battery staple 27")?;
    // Without a session, every page redirects to the sign-in.
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
