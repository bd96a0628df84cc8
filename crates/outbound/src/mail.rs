//! Sends e-mail by SMTP.

use std::time::Duration;

use async_trait::async_trait;
use domain::person::Email;
use domain::ports::{Mail, Mailer};
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::{self, AsyncSmtpTransport};
use lettre::{AsyncTransport as _, Tokio1Executor};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::dial::certificates;

/// How long one e-mail may take, from the connection to the last answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
/// How long one step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// E-mails that are sent at once; further ones wait, within the same time.
const AT_ONCE: usize = 8;

/// Why e-mail cannot be sent with these settings. The text does not repeat the URL, because it contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMailSettings {
    #[error("mail.url is not a URL such as smtps://user:password@mail.example.com")]
    Url,
    #[error(
        "mail.url must begin with smtps://, or with smtp:// for STARTTLS (?tls=required) or no TLS"
    )]
    Scheme,
    #[error("mail.url has a password but no TLS; write smtps:// or add ?tls=required")]
    PlainPassword,
    #[error("mail.from is not an e-mail address such as 'Switchboard <alerts@example.com>'")]
    From,
    #[error("mail.tls_ca holds no certificate in PEM form")]
    Certificate,
}

/// How e-mail is sent.
pub struct MailSettings<'a> {
    pub url: &'a str,
    pub from: &'a str,
    /// Certificates in PEM form to trust instead of the public ones.
    pub tls_ca: Option<&'a [u8]>,
}

/// Sends e-mail. Each is one connection, because there are few.
pub struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    permits: Semaphore,
}

impl SmtpMailer {
    pub fn new(settings: &MailSettings<'_>) -> Result<Self, BadMailSettings> {
        let url = Url::parse(settings.url).map_err(|_| BadMailSettings::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(BadMailSettings::Url)?.to_owned();
        let mode = TlsMode::from_url(&url)?;
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(settings.url)
            .map_err(|_| BadMailSettings::Url)?;
        let mut parameters = TlsParameters::builder(host);
        if let Some(pem) = settings.tls_ca {
            // The library takes any text, and would then trust nobody.
            certificates(pem).map_err(|_| BadMailSettings::Certificate)?;
            let roots = Certificate::from_pem(pem).map_err(|_| BadMailSettings::Certificate)?;
            parameters = parameters
                .certificate_store(CertificateStore::None)
                .add_root_certificate(roots);
        }
        let parameters = parameters
            .build()
            .map_err(|_| BadMailSettings::Certificate)?;
        let transport = builder
            .tls(mode.with(parameters))
            .timeout(Some(STEP_TIMEOUT))
            .build();
        Ok(Self {
            transport,
            from: settings.from.parse().map_err(|_| BadMailSettings::From)?,
            permits: Semaphore::new(AT_ONCE),
        })
    }

    async fn send_now(&self, mail: Mail<'_>) -> Result<(), String> {
        let _permit = self.permits.acquire().await;
        let message = Message::builder()
            .from(self.from.clone())
            .to(mailbox(mail.to)?)
            .subject(mail.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.to_owned())
            .map_err(|_| "the e-mail cannot be written".to_owned())?;
        let sent = self.transport.send(message).await;
        sent.map(drop).map_err(|error| reason(&error))
    }
}

fn mailbox(email: &Email) -> Result<Mailbox, String> {
    let address = email.as_str().parse();
    let address = address.map_err(|_| "the address is not valid for e-mail".to_owned())?;
    Ok(Mailbox::new(None, address))
}

/// Why an e-mail was not sent. Servers repeat addresses in their answers, so only the code is told.
fn reason(error: &smtp::Error) -> String {
    if let Some(code) = error.status() {
        return format!("the mail server answered {code}");
    }
    if error.is_timeout() {
        return "the mail server did not answer in time".to_owned();
    }
    if error.is_tls() {
        return "TLS with the mail server failed; is its certificate valid for its name?"
            .to_owned();
    }
    if error.is_client() {
        return "the mail server offers no way to sign in, or no STARTTLS".to_owned();
    }
    "the mail server cannot be reached".to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsMode {
    Always,
    StartTls,
    IfOffered,
    Never,
}

impl TlsMode {
    fn from_url(url: &Url) -> Result<Self, BadMailSettings> {
        let tls = url.query_pairs().find(|(key, _)| key == "tls");
        let tls = tls.as_ref().map(|(_, value)| &**value);
        let mode = match (url.scheme(), tls) {
            ("smtps", _) => Self::Always,
            ("smtp", Some("required")) => Self::StartTls,
            ("smtp", Some("opportunistic")) => Self::IfOffered,
            ("smtp", None) => Self::Never,
            _ => return Err(BadMailSettings::Scheme),
        };
        let is_plain = matches!(mode, Self::Never | Self::IfOffered);
        if is_plain && url.password().is_some() {
            return Err(BadMailSettings::PlainPassword);
        }
        Ok(mode)
    }

    fn with(self, parameters: TlsParameters) -> Tls {
        match self {
            Self::Always => Tls::Wrapper(parameters),
            Self::StartTls => Tls::Required(parameters),
            Self::IfOffered => Tls::Opportunistic(parameters),
            Self::Never => Tls::None,
        }
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: Mail<'_>) -> Result<(), String> {
        let sent = timeout(SEND_TIMEOUT, self.send_now(mail)).await;
        sent.unwrap_or_else(|_| Err("the mail server did not answer in time".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let new = |url: &str, from: &str| {
            let settings = MailSettings {
                url,
                from,
                tls_ca: None,
            };
            SmtpMailer::new(&settings).map(drop)
        };
        let from = "Switchboard <alerts@example.com>";
        for (url, expected) in [
            ("smtps://user:pass@mail.example.com", Ok(())),
            ("smtp://user:pass@mail.example.com:587?tls=required", Ok(())),
            ("smtp://127.0.0.1:25", Ok(())),
            (
                "smtp://user:pass@mail.example.com",
                Err(BadMailSettings::PlainPassword),
            ),
            (
                "smtp://user:pass@mail.example.com?tls=opportunistic",
                Err(BadMailSettings::PlainPassword),
            ),
            ("https://mail.example.com", Err(BadMailSettings::Scheme)),
            (
                "smtp://mail.example.com?tls=maybe",
                Err(BadMailSettings::Scheme),
            ),
            ("mail.example.com", Err(BadMailSettings::Url)),
        ] {
            assert_eq!(new(url, from), expected, "{url}");
        }
        let url = "smtp://127.0.0.1:25";
        assert_eq!(new(url, "nobody"), Err(BadMailSettings::From));
        let settings = MailSettings {
            url,
            from,
            tls_ca: Some(b"no certificate"),
        };
        assert!(SmtpMailer::new(&settings).is_err());
    }
}
