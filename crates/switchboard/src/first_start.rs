//! The first start: creates an account, a token and a sign-in link, so that the first message takes a minute.

use std::net::SocketAddr;

use domain::{AllowList, Clock as _, Money, Permissions};
use engine::clock::SystemClock;
use engine::identity::accounts::{AccountError, TokenInput};
use engine::{Actor, Engine};
use jiff::SignedDuration;

use crate::cli::Role;
use crate::config::Config;
use crate::config::carriers::Carrier;
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
    /// The text that the first start prints. It fits on a terminal of 80 columns and 24 lines, unless addresses or paths
    /// are long.
    pub(crate) fn welcome(&self, config: &Config, roles: &[Role], listening: SocketAddr) -> String {
        let steps = [
            roles
                .contains(&Role::Dashboard)
                .then(|| self.sign_in_step(config, listening)),
            Some(self.send_step(config, listening)),
            Some(next_step(config)),
        ];
        let mut lines = vec![format!(
            "\nThis is the first start. It created the account '{ACCOUNT}' with {BALANCE} {}.\n\
             The sign-in link and the API token below are shown only once.\n",
            config.billing.currency
        )];
        let steps = (1..).zip(steps.into_iter().flatten());
        lines.extend(steps.map(|(number, step)| format!("{number}. {step}")));
        lines.push(format!("Reference: {}/docs", config.base_url(listening)));
        if roles.contains(&Role::Mcp) {
            let mcp = config.mcp_url(listening);
            lines.push(format!("AI clients, with the same token: {mcp}/mcp"));
        }
        let key = keys::file(config);
        if key.exists() && config.security.key.is_none() {
            let key = key.display();
            lines.push(format!("Keep a copy of the encryption key: {key}"));
        }
        lines.join("\n") + "\n\n"
    }

    fn sign_in_step(&self, config: &Config, listening: SocketAddr) -> String {
        format!(
            "Open the dashboard and set a password. The link works once, within a day:\n  \
             {}/dashboard/sign-in/{}\n",
            config.dashboard_url(listening),
            self.link
        )
    }

    /// The header with the token is on a line of its own, so that lines stay short.
    fn send_step(&self, config: &Config, listening: SocketAddr) -> String {
        let base = config.base_url(listening);
        let token = &self.token;
        let header = format!("-H '{}-Token: {token}'", config.server.header_prefix);
        format!(
            "Send a message and read its status. The API token is valid for a week:\n  \
             {token}\n  \
             curl -s {base}/sms -H 'Content-Type: application/json' \\\n    \
             {header} \\\n    \
             -d '{{\"to\":\"+37120000001\",\"from\":\"Switchboard\",\"message\":\"Hello\"}}'\n  \
             curl -s {base}/sms/status/ID \\\n    \
             {header}\n"
        )
    }
}

fn next_step(config: &Config) -> String {
    let is_simulated = |carrier: &Carrier| matches!(carrier, Carrier::Simulator(_));
    let subject = if config.carriers().iter().all(is_simulated) {
        "Connect a carrier, to send beyond the simulated network (docs/CARRIERS.md)"
    } else {
        "Prepare for production (docs/OPERATIONS.md)"
    };
    format!(
        "{subject},\n  and create a token for each of your programs:\n  \
         switchboard token create --account {ACCOUNT} --name NAME --permission sms:send{}\n",
        data_dir_option(config)
    )
}
