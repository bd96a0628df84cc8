//! Sending a message, with a preview of its size and price.

pub(super) mod draft;
pub(super) mod measure;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use domain::message::AcceptedMessages;
use domain::ports::ListRange;
use domain::sender::SenderState;
use engine::sending::submit::{Cost, SubmitError};
use http::StatusCode;
use requests::{Problem, field_name};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::sentence;
use crate::kit::page::{Frame, show as show_page, with_retry_after};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use crate::pages::templates::TemplateChoice;
use draft::Draft;
use measure::Measure;

/// Enough for a text of 255 parts, escaped, to a thousand recipients.
pub(super) const MAX_BYTES: usize = 512 * 1024;
const HERE: &str = "/dashboard/send";
const MAX_SENDERS: u32 = 500;
const AGAIN_AFTER_S: u32 = 2;
pub(super) const SUSPENDED: &str =
    "This account is suspended, so nothing can be sent. Ask the operator of this service.";

#[derive(Template)]
#[template(path = "send.html")]
struct SendPage {
    frame: Frame,
    draft: Draft,
    senders: Vec<String>,
    is_simulated: bool,
    lacks_sender: bool,
    problems: Vec<Refused>,
    measure: Measure,
    choice: TemplateChoice,
}

/// The preview, which the script updates while a person types.
#[derive(Template)]
#[template(path = "measure.html")]
struct MeasurePart {
    measure: Measure,
}

/// Why a message was not sent.
pub(super) struct Refused {
    /// `None`: the problem is not in a field.
    pub(super) field: Option<&'static str>,
    pub(super) text: String,
    pub(super) status: StatusCode,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show).post(send))
        .route("/dashboard/send/measure", post(check))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let senders = dashboard.approved_senders(&member).await?;
    let is_simulated = dashboard.engine.is_simulated();
    let mut draft = Draft::begin(&query, senders.first(), is_simulated);
    let choice = dashboard
        .template_choice(&member, HERE, Some(&query))
        .await?;
    if let Some(text) = choice.text() {
        text.clone_into(&mut draft.message);
    }
    let no_problems = Vec::new();
    dashboard
        .send_page_with(&member, draft, no_problems, choice)
        .await
}

/// Shows the preview: the whole page, or only the preview for the script.
async fn check(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted<MAX_BYTES>,
) -> Result<Response, Failure> {
    let is_part = form.get("part").is_some();
    let draft = Draft::read(form);
    if !is_part {
        return dashboard.send_page(&member, draft, Vec::new()).await;
    }
    let measure = Measure::new(&dashboard, &member, &draft).await;
    Ok(show_page(StatusCode::OK, &MeasurePart { measure }))
}

async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted<MAX_BYTES>,
) -> Result<Response, Failure> {
    let draft = Draft::read(form);
    if member.account.suspended {
        return dashboard.send_page(&member, draft, Vec::new()).await;
    }
    match submit(&dashboard, &member, &draft).await {
        Ok(receipt) if receipt.messages == 1 => {
            let address = format!("/dashboard/messages/{}", receipt.first);
            Ok(Redirect::to(&address).into_response())
        }
        Ok(receipt) => {
            let said = format!("sent-{}", receipt.messages);
            Ok(member.redirect_saying("/dashboard/messages", &said))
        }
        Err(refused) => {
            let problems = all_problems(&dashboard, &member, &draft, refused).await;
            dashboard.send_page(&member, draft, problems).await
        }
    }
}

/// Sends a message; one draft is sent only once.
pub(super) async fn submit(
    dashboard: &Dashboard,
    member: &Member,
    draft: &Draft,
) -> Result<AcceptedMessages, Refused> {
    let once = Some(draft.once_only());
    let (access, submit) = (member.access(), &dashboard.engine.submit);
    let sent = if draft.is_viber {
        let order = draft.viber_order();
        submit.send_viber(&access, order, once, None).await
    } else if draft.is_interactive() {
        return Err(Refused {
            field: Some(draft::IMAGE),
            text: "Only Viber messages have an image or a button. Choose Viber, or empty these fields.".to_owned(),
            status: StatusCode::UNPROCESSABLE_ENTITY,
        });
    } else {
        submit.send(&access, draft.order(), once, None).await
    };
    sent.map_err(|error| Refused::new(error, &dashboard.settings.currency))
}

/// What a draft would cost, for each recipient.
pub(super) async fn costs(
    dashboard: &Dashboard,
    member: &Member,
    draft: &Draft,
) -> Result<Vec<Cost>, SubmitError> {
    let (access, submit) = (member.access(), &dashboard.engine.submit);
    if draft.is_viber {
        submit.cost_viber(&access, draft.viber_order()).await
    } else {
        submit.cost(&access, draft.order()).await
    }
}

/// All that is wrong with a draft, beginning with the first problem: the field of each is replaced by a valid one, and the
/// rest is checked again.
async fn all_problems(
    dashboard: &Dashboard,
    member: &Member,
    draft: &Draft,
    first: Refused,
) -> Vec<Refused> {
    let (mut draft, mut problems) = (draft.clone(), vec![first]);
    while let Some(field) = problems.last().and_then(|problem| problem.field) {
        draft.make_valid(field);
        let Err(error) = costs(dashboard, member, &draft).await else {
            break;
        };
        let next = Refused::new(error, &dashboard.settings.currency);
        let is_known = problems.iter().any(|problem| problem.field == next.field);
        if next.field.is_none() || is_known {
            break;
        }
        problems.push(next);
    }
    problems
}

/// Responds with a page that may show a refusal.
pub(super) fn respond(status: StatusCode, page: &impl Template) -> Response {
    let response = show_page(status, page);
    match status {
        StatusCode::SERVICE_UNAVAILABLE => with_retry_after(response, AGAIN_AFTER_S),
        _ => response,
    }
}

impl Dashboard {
    /// Approved senders, and numbers that the account owns.
    pub(super) async fn approved_senders(&self, member: &Member) -> Result<Vec<String>, Failure> {
        let page = ListRange {
            limit: MAX_SENDERS,
            offset: 0,
        };
        let senders = self.engine.senders.list(member.account.id, page).await?;
        let approved = senders
            .into_iter()
            .filter(|sender| sender.state == SenderState::Approved);
        let mut names: Vec<String> = approved.map(|sender| sender.name.to_string()).collect();
        let numbers = self.engine.numbers.list().await?.into_iter();
        let own = numbers.filter(|number| number.entry.account == member.account.id);
        for number in own.map(|number| number.entry.number.to_string()) {
            if !names.contains(&number) {
                names.push(number);
            }
        }
        Ok(names)
    }

    async fn send_page(
        &self,
        member: &Member,
        draft: Draft,
        problems: Vec<Refused>,
    ) -> Result<Response, Failure> {
        let choice = self.template_choice(member, HERE, None).await?;
        self.send_page_with(member, draft, problems, choice).await
    }

    async fn send_page_with(
        &self,
        member: &Member,
        draft: Draft,
        problems: Vec<Refused>,
        choice: TemplateChoice,
    ) -> Result<Response, Failure> {
        let senders = self.approved_senders(member).await?;
        let measure = Measure::new(self, member, &draft).await;
        let mut status = StatusCode::OK;
        let mut frame = member.frame();
        if member.account.suspended {
            frame = frame.with_problem(SUSPENDED);
        }
        if let Some(refused) = problems.first() {
            status = refused.status;
            if refused.field.is_none() {
                frame = frame.with_problem(refused.text.clone());
            }
        }
        let page = SendPage {
            frame,
            draft,
            lacks_sender: member.access().approved_senders_only && senders.is_empty(),
            senders,
            is_simulated: self.engine.is_simulated(),
            problems,
            measure,
            choice,
        };
        Ok(respond(status, &page))
    }
}

impl SendPage {
    fn problem_of(&self, field: &str) -> Option<&str> {
        let mut problems = self.problems.iter();
        let problem = problems.find(|problem| problem.field == Some(field))?;
        Some(problem.text.as_str())
    }

    /// Whether the optional fields are unfolded.
    fn shows_more(&self) -> bool {
        let wrong = ["scheduled", "dlrUrl", "testMode"];
        self.draft.has_more() || wrong.iter().any(|field| self.problem_of(field).is_some())
    }

    /// Whether the fields of Viber messages are unfolded.
    fn shows_viber(&self) -> bool {
        self.draft.is_viber || self.draft.is_interactive()
    }
}

impl Refused {
    fn new(error: SubmitError, currency: &str) -> Self {
        let field = match &error {
            SubmitError::Invalid(invalid) => draft::FIELDS
                .into_iter()
                .find(|field| *field == field_name(invalid.field)),
            SubmitError::Sender(_) => Some("from"),
            SubmitError::Country { .. } => Some("to"),
            _ => None,
        };
        let status = match error {
            SubmitError::Busy | SubmitError::Stopping | SubmitError::Store(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self {
            field,
            text: words(error, currency),
            status,
        }
    }
}

fn words(error: SubmitError, currency: &str) -> String {
    match error {
        SubmitError::Invalid(invalid) => sentence(&invalid.reason),
        SubmitError::Sender(from) => format!(
            "‘{from}’ is not one of your approved senders, and this account may use only those. Register it under Senders."
        ),
        SubmitError::Busy | SubmitError::Stopping | SubmitError::Store(_) => {
            "The service cannot store messages right now. Press Send again shortly: one page sends its message only once.".to_owned()
        }
        other => Problem::from_submit(other, currency).into_message(),
    }
}
