//! A test message by one carrier. The address of the page has everything that it needs to find the report, so that it
//! works on every node.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::{Code, Msisdn, Outcome};
use engine::catalogue::plans::{PlanError, SentTest, TestAnswer, TestInput};
use http::StatusCode;
use url::form_urlencoded::Serializer;

use super::failed;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::{FormInput, sentence};
use crate::kit::format::Moment;
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/carriers/test";
const LIVE: &str = "/dashboard/operator/carriers/test/live";
const NAME: &str = "name";
const TO: &str = "to";
const FROM: &str = "from";
const TEXT: &str = "text";
/// Fields of the address after the message was taken.
const ID: &str = "id";
const MS: &str = "ms";
const REFERENCES: &str = "references";
/// Separates references.
const LINE_BREAK: char = '\n';

#[derive(Template)]
#[template(path = "operator/plan/test.html")]
struct TestPage {
    frame: Frame,
    name: String,
    input: FormInput,
    progress: Option<Progress>,
    /// The address of the live updates.
    live: Option<String>,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "operator/plan/test_part.html")]
struct ProgressPart {
    progress: Option<Progress>,
}

/// What happened to a test message so far.
struct Progress {
    steps: Vec<String>,
    /// The state of the message, for its colour.
    state: &'static str,
    /// The report, and when it came.
    ended: Option<(String, Option<Moment>)>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let name = query.text(NAME).to_owned();
    let found = dashboard.plans.find_carrier(&name).await;
    let found = found.map_err(|error| failed(&operator, error))?;
    if found.is_none_or(|found| !found.carrier.is_testable) {
        return Err(Failure::NotFound(Box::new(operator.frame())));
    }
    let progress = follow_up(&dashboard, &query).await;
    let progress = progress.map_err(|error| failed(&operator, error))?;
    let is_waiting = progress.as_ref().is_some_and(|one| one.ended.is_none());
    let input = FormInput::with_defaults(vec![
        (NAME, name.clone()),
        (TO, query.text(TO).to_owned()),
        (FROM, String::new()),
        (TEXT, String::new()),
    ]);
    let page = TestPage {
        frame: operator.frame(),
        name,
        input,
        progress,
        live: is_waiting.then(|| query.at(LIVE).address()),
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Response {
    let own = dashboard.clone();
    live::stream(&dashboard, &operator, move || {
        let (dashboard, query) = (own.clone(), query.clone());
        async move {
            let progress = follow_up(&dashboard, &query).await;
            let progress = progress.map_err(|error| match error {
                PlanError::Store(error) => Failure::from(error),
                PlanError::Wrong(_) => Failure::Form,
            })?;
            let is_over = progress.as_ref().is_none_or(|one| one.ended.is_some());
            Ok(Fragment::render(&ProgressPart { progress }).last(is_over))
        }
    })
    .await
}

/// The progress of a message that the carrier took.
async fn follow_up(dashboard: &Dashboard, query: &Query) -> Result<Option<Progress>, PlanError> {
    let (Some(id), Some(references)) = (query.get(ID), query.get(REFERENCES)) else {
        return Ok(None);
    };
    let references: Vec<String> = references.split(LINE_BREAK).map(str::to_owned).collect();
    let name = query.text(NAME);
    let report = dashboard.plans.find_test_report(name, &references).await?;
    let (state, ended) = match report {
        None => ("sent", None),
        Some(report) => {
            let (state, text) = match report.outcome {
                Outcome::Delivered => ("delivered", "Delivered".to_owned()),
                Outcome::Failed(code) => ("failed", format!("Failed: {code}")),
                Outcome::Expired => ("failed", format!("Expired: {}", Code::EXPIRED)),
            };
            (state, Some((text, Some(report.at.into()))))
        }
    };
    Ok(Some(Progress {
        steps: vec![
            sent_step(id, query.text(TO), name),
            format!("Accepted after {} ms", query.text(MS)),
        ],
        state,
        ended,
    }))
}

fn sent_step(id: impl std::fmt::Display, to: impl std::fmt::Display, carrier: &str) -> String {
    format!("Message {id} sent to {to} by {carrier}")
}

/// Sends the message and waits for the answer.
pub(super) async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut input = FormInput::from_form(&form, &[NAME, TO, FROM, TEXT]);
    let name = input.text(NAME).to_owned();
    let to = match Msisdn::parse(input.text(TO)) {
        Ok(to) => to,
        Err(problem) => {
            input.refuse(TO, problem);
            return Ok(page(&operator, name, input, None));
        }
    };
    let test = TestInput {
        carrier: name.clone(),
        to,
        from: input.given(FROM).map(str::to_owned),
        text: input.given(TEXT).map(str::to_owned),
    };
    let sent = match dashboard.plans.send_test(test).await {
        Ok(sent) => sent,
        Err(PlanError::Store(error)) => return Err(error.into()),
        Err(PlanError::Wrong(problems)) => {
            let texts: Vec<String> = problems.into_iter().map(|one| one.text).collect();
            input.refuse(TO, texts.join("; "));
            return Ok(page(&operator, name, input, None));
        }
    };
    let SentTest {
        id,
        took_ms,
        answer,
    } = sent;
    let (step, state, result) = match answer {
        TestAnswer::Taken { references } => {
            let mut query = Serializer::new(String::new());
            query
                .append_pair(NAME, &name)
                .append_pair(ID, &id.to_string())
                .append_pair(TO, &to.to_string())
                .append_pair(MS, &took_ms.to_string())
                .append_pair(REFERENCES, &references.join(&LINE_BREAK.to_string()));
            let address = format!("{HERE}?{}", query.finish());
            return Ok(Redirect::to(&address).into_response());
        }
        TestAnswer::Answered(answer) => (format!("Answered after {took_ms} ms"), "done", answer),
        TestAnswer::Failed(reason) => (
            format!("Ended after {took_ms} ms"),
            "failed",
            sentence(&reason),
        ),
    };
    let progress = Progress {
        steps: vec![sent_step(id, to, &name), step],
        state,
        ended: Some((result, None)),
    };
    Ok(page(&operator, name, input, Some(progress)))
}

fn page(
    operator: &Operator,
    name: String,
    input: FormInput,
    progress: Option<Progress>,
) -> Response {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = TestPage {
        frame: operator.frame(),
        name,
        input,
        progress,
        live: None,
    };
    show_page(status, &page)
}
