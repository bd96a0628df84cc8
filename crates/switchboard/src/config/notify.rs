//! `[[notify]]` and `[mail]`: who is notified about what, and how e-mail is sent.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail, ensure};
use domain::CallbackUrl;
use domain::alert::Event;
use domain::ports::Mailer;
use engine::{Address, NotifyTarget};
use outbound::mail::{MailSettings, SmtpMailer};
use serde::{Deserialize, Serialize};

use super::Secret;
use super::problems::Mistake;

/// More entries would make each event slow.
const MOST_ENTRIES: usize = 50;

/// Somebody who is notified. A URL or an address may be a secret, so `config check` and debug output hide it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Notify {
    pub(crate) url: Option<Secret>,
    pub(crate) email: Option<Secret>,
    /// All if unset.
    pub(crate) events: Option<Vec<String>>,
    pub(crate) secret: Option<Secret>,
}

impl Notify {
    pub(super) fn resolve_secrets(&mut self) -> anyhow::Result<()> {
        for (secret, key) in [
            (&mut self.url, "notify.url"),
            (&mut self.email, "notify.email"),
            (&mut self.secret, "notify.secret"),
        ] {
            if let Some(secret) = secret {
                secret.resolve(key)?;
            }
        }
        Ok(())
    }

    fn target(&self, mail: &Mail) -> anyhow::Result<NotifyTarget> {
        let names = self.events.iter().flatten();
        let events = names.map(|name| name.parse::<Event>().context("notify.events"));
        let events: Vec<Event> = events.collect::<Result<_, _>>()?;
        ensure!(
            self.events.is_none() || !events.is_empty(),
            "notify.events is empty; leave it out for all events"
        );
        let address = match (&self.url, &self.email) {
            (Some(url), None) => {
                let Some(secret) = &self.secret else {
                    bail!(
                        "notify.secret is not set; give a secret such as whsec_ and 24 to 64 bytes in Base64, which signs the requests"
                    );
                };
                outbound::signature::sign(&[&secret.0], "1", "1", b"")
                    .ok()
                    .context("notify.secret is not whsec_ and a key in Base64")?;
                // The reason may repeat the URL.
                let url = CallbackUrl::parse(&url.0).ok();
                Address::Url {
                    url: url
                        .context("notify.url is not an http or https URL without a user name")?,
                    secret: secret.0.clone(),
                }
            }
            (None, Some(email)) => {
                ensure!(
                    mail.url.is_some(),
                    "notify.email needs mail.url, the server that sends e-mail"
                );
                ensure!(
                    self.secret.is_none(),
                    "notify.secret signs requests; leave it out for an e-mail address"
                );
                let email = email.0.parse().ok();
                Address::Email(email.context("notify.email is not an e-mail address")?)
            }
            (Some(_), Some(_)) => {
                bail!("an entry of [[notify]] has url or email, not both; make two entries")
            }
            (None, None) => bail!("an entry of [[notify]] needs url or email"),
        };
        Ok(NotifyTarget { address, events })
    }
}

/// How e-mail is sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mail {
    pub(crate) url: Option<Secret>,
    pub(crate) from: Option<String>,
    pub(crate) tls_ca: Option<PathBuf>,
}

impl Mail {
    /// `None` if no server is configured.
    pub(crate) fn mailer(&self) -> anyhow::Result<Option<Arc<dyn Mailer>>> {
        let Some(url) = &self.url else {
            ensure!(
                self.from.is_none() && self.tls_ca.is_none(),
                "mail.from and mail.tls_ca have no effect without mail.url"
            );
            return Ok(None);
        };
        let from = self.from.as_deref().context(
            "mail.from is not set; give the address that e-mails come from, such as alerts@example.com",
        )?;
        let pem = self.tls_ca.as_ref().map(|path| {
            let pem = std::fs::read(path);
            pem.with_context(|| format!("cannot read mail.tls_ca {}", path.display()))
        });
        let pem = pem.transpose()?;
        let settings = MailSettings {
            url: &url.0,
            from,
            tls_ca: pem.as_deref(),
        };
        Ok(Some(Arc::new(SmtpMailer::new(&settings)?)))
    }
}

/// Where notifications go.
pub(crate) fn targets(entries: &[Notify], mail: &Mail) -> anyhow::Result<Vec<NotifyTarget>> {
    entries.iter().map(|entry| entry.target(mail)).collect()
}

/// Reads the secrets of entries from the environment and from files.
pub(super) fn resolve_secrets(entries: &mut [Notify]) -> Vec<Mistake> {
    let resolved = entries.iter_mut().map(Notify::resolve_secrets);
    mistakes(resolved)
}

pub(super) fn find_mistakes(entries: &[Notify], mail: &Mail) -> Vec<Mistake> {
    let mut found = mistakes(entries.iter().map(|entry| entry.target(mail).map(drop)));
    if entries.len() > MOST_ENTRIES {
        let count = entries.len();
        let error =
            anyhow!("there are {count} entries of [[notify]]; at most {MOST_ENTRIES} are possible");
        found.push(error.into());
    }
    found
}

fn mistakes(results: impl Iterator<Item = anyhow::Result<()>>) -> Vec<Mistake> {
    let numbered = results.enumerate();
    let mistake = |(index, result): (usize, anyhow::Result<()>)| {
        Some(Mistake::in_item("notify", index, result.err()?))
    };
    numbered.filter_map(mistake).collect()
}
