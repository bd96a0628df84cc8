//! Confirming a number by its PIN, and sending a new PIN.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use domain::sender::{NotAPin, SenderKind};
use engine::senders::{ConfirmError, RegisterError, SenderInput};
use requests::Problem;

use super::{find, sender_page};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::session::{Member, Posted};

pub(super) async fn confirm(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let sender = find(&dashboard, &member, &id).await?;
    let senders = &dashboard.engine.senders;
    let code = form.get("code").unwrap_or_default().trim();
    let confirmed = senders.confirm(member.account.id, sender.id, code).await;
    let problem = match confirmed {
        Ok(()) => {
            let address = format!("/dashboard/senders/{}", sender.id);
            return Ok(member.redirect_saying(&address, "confirmed"));
        }
        Err(ConfirmError::Store(error)) => return Err(error.into()),
        Err(error) => words(&error),
    };
    // The form does not show the wrong PIN again.
    let mut typed = FormInput::default();
    typed.refuse("code", problem);
    let sender = find(&dashboard, &member, &id).await?;
    Ok(sender_page(member.frame(), sender, typed))
}

fn words(error: &ConfirmError) -> String {
    match error {
        ConfirmError::Invalid(_) => NotAPin.to_string(),
        ConfirmError::Wrong { tries_left: 0 } | ConfirmError::UsedUp => {
            "No tries are left for this PIN; request a new one".to_owned()
        }
        ConfirmError::Wrong { tries_left: 1 } => "This is not the PIN; one try is left".to_owned(),
        ConfirmError::Wrong { tries_left } => {
            format!("This is not the PIN; {tries_left} tries are left")
        }
        ConfirmError::Expired => "This PIN has expired; request a new one".to_owned(),
        ConfirmError::NotWaiting(_) => "No PIN is expected any more".to_owned(),
        ConfirmError::Unknown | ConfirmError::Store(_) => "The sender no longer exists".to_owned(),
    }
}

/// Registering a number again sends a new PIN.
pub(super) async fn send_pin(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    _form: Posted,
) -> Result<Response, Failure> {
    let sender = find(&dashboard, &member, &id).await?;
    let order = SenderInput {
        name: sender.name.to_string().into(),
        kind: SenderKind::Msisdn.name().into(),
        category: None,
        description: None,
        notification_url: sender
            .notification_url
            .as_ref()
            .map(|url| url.as_str().to_owned().into()),
    };
    let senders = &dashboard.engine.senders;
    let problem = match senders.register(&member.access(), order).await {
        Ok(id) => {
            let address = format!("/dashboard/senders/{id}");
            return Ok(member.redirect_saying(&address, "pin"));
        }
        Err(RegisterError::Store(error)) => return Err(error.into()),
        Err(RegisterError::TooSoon(_)) => {
            "A PIN was sent less than a minute ago. Wait a moment, then request a new one."
                .to_owned()
        }
        Err(error) => {
            Problem::from_registration(error, &dashboard.settings.currency).into_message()
        }
    };
    Ok(sender_page(
        member.frame().with_problem(problem),
        sender,
        FormInput::default(),
    ))
}
