//! The block list.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::block::{BlockKind, BlockRecord, BlockRule};
use engine::refusals::blocks::BlockError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/blocks";
const KIND: &str = "kind";
const VALUE: &str = "value";
/// Only so many rules are shown; the command line lists all.
const SHOWN: usize = 500;

#[derive(Template)]
#[template(path = "operator/blocks.html")]
struct BlocksPage {
    frame: Frame,
    input: FormInput,
    kinds: [BlockKind; 4],
    rows: Vec<BlockRow>,
    /// How many rules are not shown.
    hidden: Option<String>,
}

struct BlockRow {
    kind: &'static str,
    value: String,
    since: Moment,
}

impl BlockRow {
    fn new(record: &BlockRecord) -> Self {
        Self {
            kind: record.rule.kind().name(),
            value: record.rule.shown_value(),
            since: record.since.into(),
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let frame = operator.frame();
    let frame = match operator.said(&query) {
        Some("added") => frame.with_success("The rule was added. It is in force now."),
        Some("removed") => frame.with_success("The rule was removed."),
        _ => frame,
    };
    let input = FormInput::with_defaults(vec![
        (KIND, BlockKind::Number.name().to_owned()),
        (VALUE, String::new()),
    ]);
    page(&dashboard, frame, input).await
}

async fn page(dashboard: &Dashboard, frame: Frame, input: FormInput) -> Result<Response, Failure> {
    let status = if input.is_refused() {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    let records = dashboard.engine.blocks.list().await?;
    let hidden = records.len().saturating_sub(SHOWN);
    let page = BlocksPage {
        frame,
        input,
        kinds: BlockKind::ALL,
        rows: records.iter().take(SHOWN).map(BlockRow::new).collect(),
        hidden: (hidden > 0).then(|| count(hidden as u64)),
    };
    Ok(show_page(status, &page))
}

fn kind(form: &Form) -> Result<BlockKind, Failure> {
    let kind = BlockKind::from_name(form.get(KIND).unwrap_or_default());
    kind.ok_or(Failure::Form)
}

pub(super) async fn add(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut input = FormInput::from_form(&form, &[KIND, VALUE]);
    match BlockRule::parse(kind(&form)?, input.given(VALUE).unwrap_or_default()) {
        Ok(rule) => match dashboard.engine.blocks.add(&operator.by(), &rule).await {
            Ok(_) => return Ok(operator.redirect_saying(HERE, "added")),
            Err(BlockError::Store(error)) => return Err(error.into()),
            Err(full @ BlockError::Full) => input.refuse(VALUE, full),
        },
        Err(problem) => input.refuse(VALUE, problem),
    }
    page(&dashboard, operator.frame(), input).await
}

pub(super) async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let rule = BlockRule::parse(kind(&form)?, form.get(VALUE).unwrap_or_default());
    let rule = rule.map_err(|_| Failure::Form)?;
    let (kind, value) = (rule.kind().name(), rule.shown_value());
    operator.ask(
        &form,
        &Question {
            title: &format!("Remove the rule for the {kind} {value}?"),
            text: "Messages that it blocks are accepted again, from all accounts.",
            button: "Remove",
            back: HERE,
            is_dangerous: true,
        },
    )?;
    // Somebody else may have removed it already, which is what this person wants, too.
    let blocks = &dashboard.engine.blocks;
    blocks.remove(&operator.by(), &rule).await?;
    Ok(operator.redirect_saying(HERE, "removed"))
}
