//! What a new carrier may start with.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use engine::catalogue::plans::CarrierExample;
use http::StatusCode;

use super::carrier::CarrierForm;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::password_field::PasswordField;
use crate::kit::query::Query;
use crate::kit::session::Operator;

/// The field of the query that names the example.
const START: &str = "start";

#[derive(Template)]
#[template(path = "operator/plan/examples.html")]
struct ExamplesPage {
    frame: Frame,
    providers: Vec<CarrierExample>,
    kinds: Vec<CarrierExample>,
}

/// The form for a new carrier, or a list of what it may start with.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let mut examples = dashboard.plans.examples();
    let chosen = query.get(START).and_then(|start| {
        let at = examples.iter().position(|example| example.name == start)?;
        Some(examples.swap_remove(at))
    });
    if let Some(example) = chosen {
        let password = PasswordField::new(&dashboard, operator.prover()).await?;
        let form = CarrierForm::of_example(example, password);
        return Ok(form.page(operator.frame()));
    }
    let (providers, kinds) = examples
        .into_iter()
        .partition(|example| example.preset.is_some());
    let page = ExamplesPage {
        frame: operator.frame(),
        providers,
        kinds,
    };
    Ok(show_page(StatusCode::OK, &page))
}
