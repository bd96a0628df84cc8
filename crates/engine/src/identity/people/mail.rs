//! The e-mails with links.

use domain::Timestamp;
use domain::person::Email;
use domain::ports::{Mail, Mailer};

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    Invitation,
    NewPassword,
}

/// Sends a link to its person. The error says why it was not sent.
pub async fn send_link(
    mailer: &dyn Mailer,
    to: &Email,
    kind: LinkKind,
    link: &str,
    expires: Timestamp,
) -> Result<(), String> {
    let until = expires.strftime("%Y-%m-%d %H:%M UTC");
    let (subject, text) = match kind {
        LinkKind::Invitation => (
            "Your invitation to Switchboard",
            format!(
                "You are invited to Switchboard. Open this link to join. It works once, until {until}:\n\n{link}\n\n\
                 If you do not expect this, ignore it.\n"
            ),
        ),
        LinkKind::NewPassword => (
            "Your new password for Switchboard",
            format!(
                "Open this link to set a new password. It works once, until {until}, and ends your sessions:\n\n{link}\n\n\
                 If you did not ask for this, tell the people who run the service.\n"
            ),
        ),
    };
    let text = &text;
    mailer.send(Mail { to, subject, text }).await
}
