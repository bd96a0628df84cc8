//! The very first start: an account, a token and a link, so that the first message is a minute away.

use std::io::Write as _;
use std::net::SocketAddr;

use domain::clock::SystemClock;
use domain::{AllowList, Clock as _, Money, Permissions};
use engine::identity::accounts::{AccountError, TokenOrder};
use engine::{By, Engine};
use jiff::SignedDuration;

use crate::cli::Role;
use crate::config::Config;
use crate::keys;

/// The first account's name.
const ACCOUNT: &str = "main";
/// What the first account starts with, so that its first messages can be paid.
const BALANCE: Money = Money::from_micros(100_000_000);

/// How long the first token lives: long enough to look around, too short to be forgotten in a script.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What only the first start can show.
pub(crate) struct Welcome {
    token: String,
    link: String,
}

/// Creates the first account in an empty database; `None` where there are accounts already.
pub(crate) async fn prepare(engine: &Engine) -> anyhow::Result<Option<Welcome>> {
    if !engine.accounts.list().await?.is_empty() {
        return Ok(None);
    }
    let by = By::first_start();
    let account = match engine.accounts.create(&by, ACCOUNT, BALANCE).await {
        Ok((account, _)) => account,
        // Another node was first.
        Err(AccountError::Taken(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let order = TokenOrder {
        name: "first token".to_owned(),
        permissions: Permissions::all(),
        allow: AllowList::default(),
        expires: Some(SystemClock.now() + TOKEN_LIFETIME),
    };
    let (_, token) = engine.accounts.create_token(&by, account.id, order).await?;
    let link = engine.sign_in.create_link(&by, account.id).await?;
    Ok(Some(Welcome {
        token: token.reveal().to_owned(),
        link,
    }))
}

/// What a command needs besides to find the same database.
fn location(config: &Config) -> String {
    if config.data_dir == Config::default().data_dir {
        return String::new();
    }
    format!(" --data-dir {}", config.data_dir.display())
}

impl Welcome {
    /// Shows everything once.
    pub(crate) fn print(
        &self,
        config: &Config,
        roles: &[Role],
        listening: SocketAddr,
    ) -> anyhow::Result<()> {
        let base = config.base_url(listening);
        let header = format!("{}-Token", config.server.header_prefix);
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "\nThis is the first start. The account '{ACCOUNT}' was created; what follows is shown only once.\n"
        )?;
        if roles.contains(&Role::Dashboard) {
            let dashboard = config.dashboard_url(listening);
            writeln!(
                out,
                "Dashboard, for one sign-in within a day:\n  {dashboard}/dashboard/sign-in/{}\n",
                self.link
            )?;
        }
        writeln!(out, "API token, for a week:\n  {}\n", self.token)?;
        writeln!(
            out,
            "Make another that lives as long as you need and may do no more than you need:\n  \
             switchboard token create --account {ACCOUNT} --name NAME --expires 90d --permission sms:send{}\n",
            location(config)
        )?;
        if keys::file(config).exists() && config.security.key.is_none() {
            writeln!(
                out,
                "Secrets in the database are encrypted with the key in this file; keep a copy of it apart from backups:\n  {}\n",
                keys::file(config).display()
            )?;
        }
        writeln!(out, "Send a message:")?;
        writeln!(
            out,
            "  curl -s {base}/sms -H '{header}: {}' -H 'Content-Type: application/json' -d '{{\"to\":\"+37120000001\",\"from\":\"Switchboard\",\"message\":\"Hello\"}}'\n",
            self.token
        )?;
        writeln!(out, "Read it back, with the ID that was answered:")?;
        writeln!(
            out,
            "  curl -s {base}/sms/status/ID -H '{header}: {}'\n",
            self.token
        )?;
        if roles.contains(&Role::Mcp) {
            let mcp = config.mcp_url(listening);
            writeln!(out, "For AI clients, with the same token: {mcp}/mcp\n")?;
        }
        writeln!(out, "Reference: {base}/docs")?;
        out.flush()?;
        Ok(())
    }
}
