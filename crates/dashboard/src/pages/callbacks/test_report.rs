//! Sending a test report to an address: the delivery report of a message in test mode, which is signed and retried like
//! every other.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use crate::pages::send::draft::Draft;
use crate::pages::send::submit;

#[derive(Default)]
pub(super) struct TestForm {
    pub(super) url: String,
    pub(super) problem: Option<String>,
}

/// The page of the message shows each attempt.
pub(super) async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let url = form.take("url").trim().to_owned();
    let problem = if url.is_empty() {
        "Write the address of your receiver.".to_owned()
    } else {
        let senders = dashboard.approved_senders(&member).await?;
        let draft = Draft::test_report(senders.into_iter().next(), &url);
        match submit(&dashboard, &member, &draft).await {
            Ok(sent) => {
                let address = format!("/dashboard/messages/{}", sent.first);
                return Ok(Redirect::to(&address).into_response());
            }
            Err(refused) => refused.text,
        }
    };
    let test = TestForm {
        url,
        problem: Some(problem),
    };
    super::page(&dashboard, &member, &Query::default(), test).await
}
