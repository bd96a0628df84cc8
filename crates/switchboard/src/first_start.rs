//! The first start: creates an account, a token and a sign-in link, so that the first message takes a minute.

use std::io::Write as _;
use std::net::SocketAddr;

use domain::{AllowList, Clock as _, Money, Permissions};
use engine::clock::SystemClock;
use engine::identity::accounts::{AccountError, TokenInput};
use engine::{Actor, Engine};
use jiff::SignedDuration;

use crate::cli::Role;
use crate::config::Config;
use crate::keys;

const ACCOUNT: &str = "main";
/// Enough to pay for the first messages.
const BALANCE: Money = Money::from_micros(100_000_000);

/// Long enough to look around, too short to stay in a script.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What only the first start can show.
pub(crate) struct FirstStart {
    token: String,
    link: String,
}

/// Creates the first account in an empty database; `None` if there are accounts already.
pub(crate) async fn prepare(engine: &Engine) -> anyhow::Result<Option<FirstStart>> {
    if !engine.accounts.list().await?.is_empty() {
        return Ok(None);
    }
    let by = Actor::first_start();
    let account = match engine.accounts.create(&by, ACCOUNT, BALANCE).await {
        Ok((account, _)) => account,
        // Another node was faster.
        Err(AccountError::Taken(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let order = TokenInput {
        name: "first token".to_owned(),
        permissions: Permissions::all(),
        allow: AllowList::default(),
        expires: Some(SystemClock.now() + TOKEN_LIFETIME),
    };
    let (_, token) = engine.accounts.create_token(&by, account.id, order).await?;
    let link = engine.sign_in.create_link(&by, account.id).await?;
    Ok(Some(FirstStart {
        token: token.reveal().to_owned(),
        link,
    }))
}

/// The options that a command needs to use the same database.
fn data_dir_option(config: &Config) -> String {
    if config.data_dir == Config::default().data_dir {
        return String::new();
    }
    format!(" --data-dir {}", config.data_dir.display())
}

impl FirstStart {
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
            "Create another one with the lifetime and the permissions that you need:\n  \
             switchboard token create --account {ACCOUNT} --name NAME --expires 90d --permission sms:send{}\n",
            data_dir_option(config)
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
        writeln!(out, "Read its status, with the ID from the response:")?;
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
