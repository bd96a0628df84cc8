//! A simulated handset that sends a text. Only a service on the simulated network has one.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Msisdn;
use domain::inbound::number::InboundNumber;
use domain::message::text::fill;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/carriers/handset";
const FROM: &str = "from";
const TO: &str = "to";
const MESSAGE: &str = "message";
/// The word of the notice.
const SENT: &str = "sent";
/// A number that is reserved for tests.
const HANDSET: &str = "+447700900000";
/// How many numbers are suggested.
const SUGGESTED: usize = 100;

#[derive(Template)]
#[template(path = "operator/handset.html")]
struct HandsetPage {
    frame: Frame,
    input: FormInput,
    /// Numbers that accounts have.
    numbers: Vec<String>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    check_simulated(&dashboard, &operator)?;
    let mut frame = operator.frame();
    if let Some(id) = operator.said_count(&query, SENT) {
        frame = frame.with_success(format!(
            "The text was sent as message {id}. It is in the inbox of the account that has the number, or among the \
             unclaimed messages."
        ));
    }
    let from = query.get(FROM).unwrap_or(HANDSET).to_owned();
    let input = FormInput::with_defaults(vec![
        (FROM, from),
        (TO, query.text(TO).to_owned()),
        (MESSAGE, String::new()),
    ]);
    page(&dashboard, frame, input).await
}

fn check_simulated(dashboard: &Dashboard, operator: &Operator) -> Result<(), Failure> {
    if dashboard.engine.is_simulated() {
        Ok(())
    } else {
        Err(Failure::NotFound(Box::new(operator.frame())))
    }
}

async fn page(dashboard: &Dashboard, frame: Frame, input: FormInput) -> Result<Response, Failure> {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let owned = dashboard.engine.numbers.list().await?;
    let mut numbers: Vec<String> = owned.iter().map(|it| it.entry.number.to_string()).collect();
    numbers.dedup();
    numbers.truncate(SUGGESTED);
    let page = HandsetPage {
        frame,
        input,
        numbers,
    };
    Ok(show_page(status, &page))
}

pub(super) async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    check_simulated(&dashboard, &operator)?;
    let mut input = FormInput::from_form(&form, &[FROM, TO, MESSAGE]);
    // Browsers send a line break as two characters.
    let text = input.text(MESSAGE).replace("\r\n", "\n");
    let from = Msisdn::parse(input.text(FROM));
    let to = InboundNumber::parse(input.text(TO));
    match (from, to, fill(&text)) {
        (Ok(from), Ok(to), Ok(_)) => {
            let handset = &dashboard.engine.simulated_handset;
            let id = handset.send(&from, to, &text).await?;
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair(FROM, &from.to_string());
            query.append_pair(TO, input.text(TO));
            let address = format!("{HERE}?{}", query.finish());
            Ok(operator.redirect_saying(&address, &format!("{SENT}-{id}")))
        }
        (from, to, text) => {
            if let Err(problem) = from {
                input.refuse(FROM, problem);
            }
            if let Err(problem) = to {
                input.refuse(TO, problem);
            }
            if let Err(problem) = text {
                input.refuse(MESSAGE, problem);
            }
            page(&dashboard, operator.frame(), input).await
        }
    }
}
