//! Withdrawing a sender that is not approved yet.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use domain::sender::Step;
use engine::senders::ReviewError;

use super::{find, sender_page};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::session::{Member, Posted};

const REASON: &str = "Withdrawn by the account.";

pub(super) async fn withdraw(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let sender = find(&dashboard, &member, &id).await?;
    let address = format!("/dashboard/senders/{}", sender.id);
    member.ask(
        &form,
        &Question {
            title: &format!("Withdraw the sender {}?", sender.name),
            text: "It is not reviewed any more. You can register it again later.",
            button: "Withdraw",
            back: &address,
            is_dangerous: true,
        },
    )?;
    let review = &dashboard.engine.sender_review;
    let by = member.by();
    let withdrawn = review.decide(&by, sender.id, Step::Reject, Some(REASON));
    match withdrawn.await {
        Ok(_) => Ok(member.redirect_saying(&address, "withdrawn")),
        Err(ReviewError::Store(error)) => Err(error.into()),
        // It was approved or rejected in the meantime.
        Err(ReviewError::WrongState(..) | ReviewError::Unknown(_)) => {
            let sender = find(&dashboard, &member, &id).await?;
            let frame = member
                .frame()
                .with_problem("It was decided in the meantime, so nothing was changed.");
            Ok(sender_page(frame, sender, FormInput::default()))
        }
    }
}
