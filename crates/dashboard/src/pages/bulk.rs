//! Sending one message for each row of a CSV file: the form, the price before anything is sent, and the progress.

pub(crate) mod job;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::Money;
use domain::message::send_window::SendWindow;
use engine::refusals::csv::LineProblem;
use engine::sending::bulk::{self, BulkCost, BulkRow, BulkSettings, MAX_ROWS};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::browser::random_key;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::sentence;
use crate::kit::format::{Amount, count, shorten};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, notice_with, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use crate::pages::send::SUSPENDED;
use crate::pages::templates::TemplateChoice;
use job::{Job, Order};

const HERE: &str = "/dashboard/bulk";
/// Enough for ten thousand rows of some columns, escaped.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const MAX_EXAMPLES: usize = 3;
const EXAMPLE_CHARS: usize = 300;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(ask).post(check))
        .route("/dashboard/bulk/send", get(ask).post(send))
        .route("/dashboard/bulk/jobs/{id}", get(show))
        .route("/dashboard/bulk/jobs/{id}/live", get(follow))
}

#[derive(Template)]
#[template(path = "bulk/form.html")]
struct FormPage {
    frame: Frame,
    form: BulkForm,
    senders: Vec<String>,
    problems: Vec<LineProblem>,
    max_rows: String,
    choice: TemplateChoice,
}

#[derive(Template)]
#[template(path = "bulk/check.html")]
struct CheckPage {
    frame: Frame,
    form: BulkForm,
    messages: String,
    /// How many of them wait for the send window.
    later: String,
    parts: String,
    total: Amount,
    /// `None` if the balance is too low.
    left: Option<Amount>,
    examples: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "bulk/progress.html")]
struct ProgressPage {
    frame: Frame,
    id: String,
    progress: ProgressView,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "bulk/progress_part.html")]
struct ProgressPart {
    progress: ProgressView,
}

struct ProgressView {
    total: usize,
    done: usize,
    accepted: String,
    refused: String,
    all: String,
    problems: Vec<LineProblem>,
    stopped: Option<String>,
    is_over: bool,
}

struct BulkForm {
    from: String,
    text: String,
    csv: String,
    test_mode: String,
    /// The send window; both empty for none.
    window_from: String,
    window_until: String,
    /// Idempotency key of the page, so that a page that is sent twice sends its messages once.
    once: String,
}

impl BulkForm {
    fn read(mut form: Form) -> Self {
        Self {
            from: form.take("from").trim().to_owned(),
            // Browsers send a line break as two characters.
            text: form.take("message").replace("\r\n", "\n"),
            csv: form.take("csv"),
            test_mode: form.take("testMode"),
            window_from: form.take("windowFrom").trim().to_owned(),
            window_until: form.take("windowUntil").trim().to_owned(),
            once: form.take("once"),
        }
    }

    fn settings(&self) -> BulkSettings<'_> {
        BulkSettings {
            from: &self.from,
            test_mode: Some(self.test_mode.as_str()).filter(|mode| !mode.is_empty()),
        }
    }
}

async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let senders = dashboard.approved_senders(&member).await?;
    let choice = dashboard
        .template_choice(&member, HERE, Some(&query))
        .await?;
    let form = BulkForm {
        from: senders.first().cloned().unwrap_or_default(),
        text: choice.text().unwrap_or_default().to_owned(),
        csv: String::new(),
        test_mode: String::new(),
        window_from: String::new(),
        window_until: String::new(),
        once: random_key(),
    };
    let page = FormPage {
        frame: member.frame(),
        form,
        senders,
        problems: Vec::new(),
        max_rows: count(MAX_ROWS as u64),
        choice,
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Shows what would be sent, and its price. Nothing is sent.
async fn check(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted<MAX_BYTES>,
) -> Result<Response, Failure> {
    let form = BulkForm::read(form);
    let (rows, cost) = match dashboard.read_bulk(&member, &form).await? {
        Ok(read) => read,
        Err(problems) => return dashboard.refuse_bulk(&member, form, problems).await,
    };
    let currency = &dashboard.settings.currency;
    let left = member.account.balance.minus(cost.total);
    let can_pay = left.plus(member.account.rules.credit_limit) >= Money::ZERO;
    let later = rows.iter().filter(|row| row.send_at.is_some()).count();
    let example = |row: &BulkRow| (row.to.clone(), shorten(&row.text, EXAMPLE_CHARS));
    let page = CheckPage {
        frame: member.frame(),
        messages: count(rows.len() as u64),
        later: count(later as u64),
        parts: count(cost.parts),
        total: Amount::new(cost.total, currency),
        left: can_pay.then(|| Amount::new(left, currency)),
        examples: rows.iter().take(MAX_EXAMPLES).map(example).collect(),
        form,
    };
    Ok(show_page(StatusCode::OK, &page))
}

async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted<MAX_BYTES>,
) -> Result<Response, Failure> {
    let form = BulkForm::read(form);
    if form.once.is_empty() {
        return Err(Failure::Form);
    }
    let rows = match dashboard.read_bulk(&member, &form).await? {
        Ok((rows, _)) => rows,
        Err(problems) => return dashboard.refuse_bulk(&member, form, problems).await,
    };
    let order = Order {
        access: member.access(),
        from: form.from.clone(),
        test_mode: form.test_mode.clone(),
        once: form.once.clone(),
        rows,
    };
    let Ok(job) = job::start(&dashboard, order) else {
        let reason = "Another file is being sent. Wait until it is done.".to_owned();
        let problems = vec![LineProblem { line: 0, reason }];
        return dashboard.refuse_bulk(&member, form, problems).await;
    };
    let address = format!("{HERE}/jobs/{}", job.id);
    Ok(Redirect::to(&address).into_response())
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Response {
    let Some(job) = dashboard.bulk.find(member.account.id, &id) else {
        return notice_with(
            member.frame(),
            StatusCode::NOT_FOUND,
            "The progress is not known here",
            "The service was restarted, or another node sends this file. Messages that were accepted are listed under Messages.",
            Some(("/dashboard/messages", "Messages")),
        );
    };
    let page = ProgressPage {
        frame: member.frame(),
        id,
        progress: ProgressView::new(&job),
    };
    show_page(StatusCode::OK, &page)
}

async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let job = dashboard.bulk.find(member.account.id, &id);
    let job = job.ok_or_else(|| Failure::NotFound(Box::new(member.frame())))?;
    Ok(live::stream(&dashboard, &member, move || {
        let job = job.clone();
        async move {
            let progress = ProgressView::new(&job);
            let is_over = progress.is_over;
            Ok(Fragment::render(&ProgressPart { progress }).last(is_over))
        }
    })
    .await)
}

impl ProgressView {
    fn new(job: &Job) -> Self {
        let progress = job.progress();
        Self {
            total: job.total,
            done: progress.accepted + progress.refused,
            accepted: count(progress.accepted as u64),
            refused: count(progress.refused as u64),
            all: count(job.total as u64),
            problems: progress.problems,
            stopped: progress.stopped,
            is_over: progress.is_over,
        }
    }
}

type Read = Result<(Vec<BulkRow>, BulkCost), Vec<LineProblem>>;

impl Dashboard {
    /// Reads a file and its price. The number of files that are read at the same time is limited, as that of downloads.
    async fn read_bulk(&self, member: &Member, form: &BulkForm) -> Result<Read, Failure> {
        let general = |reason: &str| {
            vec![LineProblem {
                line: 0,
                reason: reason.to_owned(),
            }]
        };
        if member.account.suspended {
            return Ok(Err(general(SUSPENDED)));
        }
        if form.text.trim().is_empty() {
            return Ok(Err(general("Write the text of the messages.")));
        }
        let permit = self.downloads.permit(Some(member.account.id));
        let _permit = permit.map_err(Failure::Page)?;
        let mut rows = match bulk::read(&form.text, &form.csv) {
            Ok(rows) => rows,
            Err(problems) => return Ok(Err(problems)),
        };
        match SendWindow::parse(&form.window_from, &form.window_until) {
            Ok(None) => {}
            Ok(Some(window)) => {
                let reference = self.engine.catalogues.live().reference.clone();
                bulk::schedule(&mut rows, window, &reference, self.engine.now());
            }
            Err(problem) => return Ok(Err(general(&sentence(&problem.to_string())))),
        }
        let (access, submit) = (member.access(), &self.engine.submit);
        let cost = submit.cost_bulk(&access, form.settings(), &rows).await;
        Ok(cost.map(|cost| (rows, cost)))
    }

    async fn refuse_bulk(
        &self,
        member: &Member,
        form: BulkForm,
        problems: Vec<LineProblem>,
    ) -> Result<Response, Failure> {
        let page = FormPage {
            frame: member.frame().with_problem("Nothing was sent."),
            senders: self.approved_senders(member).await?,
            form,
            problems,
            max_rows: count(MAX_ROWS as u64),
            choice: self.template_choice(member, HERE, None).await?,
        };
        Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page))
    }
}
