//! The opt-out list of an account: recipients that it must not write to.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::{Msisdn, Originator};
use engine::refusals::csv;
use engine::refusals::opt_outs::{IMPORT_STEP, OptOutError};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::downloads;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::{FormInput, sentence};
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};

const HERE: &str = "/dashboard/opt-outs";
const NUMBER: &str = "number";
const SENDER: &str = "sender";
const CSV: &str = "csv";
const PAGE_SIZE: u32 = 50;
/// How many entries a download reads at a time.
const DOWNLOAD_STEP: u32 = 5_000;
/// Maximum size of an import: about 50,000 entries. The command line takes larger files.
const MAX_IMPORT_BYTES: usize = 1024 * 1024;
/// Between the number and the sender in the address of a page.
const SEPARATOR: char = '|';

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show).post(add))
        .route("/dashboard/opt-outs.csv", get(download))
        .route("/dashboard/opt-outs/remove", post(remove))
        .route("/dashboard/opt-outs/import", post(import))
}

#[derive(Template)]
#[template(path = "opt_outs.html")]
struct OptOutsPage {
    frame: Frame,
    input: FormInput,
    rows: Vec<OptOutRow>,
    next: Option<String>,
    is_first: bool,
    import_problems: Vec<String>,
    import_text: String,
}

struct OptOutRow {
    number: String,
    /// Empty for all senders.
    sender: String,
    since: Moment,
    via: &'static str,
}

impl OptOutRow {
    fn new(entry: &OptOut) -> Self {
        Self {
            number: entry.key.recipient.to_string(),
            sender: shown_sender(&entry.key),
            since: entry.since.into(),
            via: match entry.via {
                Via::Keyword => "message from the handset",
                Via::Api => "API",
                Via::Dashboard => "dashboard",
                Via::Import => "import",
            },
        }
    }
}

fn shown_sender(key: &OptOutKey) -> String {
    let sender = key.sender.as_ref().map(ToString::to_string);
    sender.unwrap_or_default()
}

/// What the page shows besides the list.
#[derive(Default)]
struct Typed {
    input: Option<FormInput>,
    import_problems: Vec<String>,
    import_text: String,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let mut frame = member.frame();
    if let Some(added) = member.said_count(&query, "imported") {
        frame = frame.with_success(format!("{} entries were added.", count(added)));
    } else if let Some("removed") = member.said(&query) {
        frame = frame.with_success("The entry was removed. The number gets messages again.");
    } else if let Some("added") = member.said(&query) {
        frame = frame.with_success("The entry was added. The number gets no more messages.");
    }
    page(&dashboard, &member, frame, &query, Typed::default()).await
}

async fn page(
    dashboard: &Dashboard,
    member: &Member,
    frame: Frame,
    query: &Query,
    typed: Typed,
) -> Result<Response, Failure> {
    let after = query.get("after").and_then(read_key);
    let opt_outs = &dashboard.engine.opt_outs;
    // One more row than the page shows tells whether there is a next page.
    let mut found = opt_outs
        .list(member.account.id, after.as_ref(), PAGE_SIZE + 1)
        .await?;
    let has_more = found.len() > PAGE_SIZE as usize;
    found.truncate(PAGE_SIZE as usize);
    let last = found.last().filter(|_| has_more);
    let last = last.map(|entry| {
        let number = entry.key.recipient.digits();
        format!("{number}{SEPARATOR}{}", shown_sender(&entry.key))
    });
    let is_refused = !typed.import_problems.is_empty()
        || typed.input.as_ref().is_some_and(FormInput::is_refused);
    let empty = || FormInput::with_defaults(vec![(NUMBER, String::new()), (SENDER, String::new())]);
    let page = OptOutsPage {
        frame,
        input: typed.input.unwrap_or_else(empty),
        rows: found.iter().map(OptOutRow::new).collect(),
        next: last.map(|key| query.address_with("after", Some(&key))),
        is_first: after.is_none(),
        import_problems: typed.import_problems,
        import_text: typed.import_text,
    };
    let status = if is_refused {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    Ok(show_page(status, &page))
}

fn read_key(text: &str) -> Option<OptOutKey> {
    let (number, sender) = text.split_once(SEPARATOR)?;
    let sender = match sender {
        "" => None,
        sender => Some(Originator::parse_approved(sender).ok()?),
    };
    Some(OptOutKey {
        recipient: Msisdn::parse(number).ok()?,
        sender,
    })
}

/// Reads the fields of an entry. Invalid ones get a problem.
fn read_entry(form: &Form) -> (FormInput, Option<OptOutKey>) {
    let mut input = FormInput::from_form(form, &[NUMBER, SENDER]);
    let number = Msisdn::parse(input.given(NUMBER).unwrap_or_default());
    let sender = input
        .given(SENDER)
        .map(Originator::parse_approved)
        .transpose();
    match (number, sender) {
        (Ok(recipient), Ok(sender)) => (input, Some(OptOutKey { recipient, sender })),
        (number, sender) => {
            if let Err(problem) = number {
                input.refuse(NUMBER, problem);
            }
            if let Err(problem) = sender {
                input.refuse(SENDER, problem);
            }
            (input, None)
        }
    }
}

async fn add(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let (mut input, key) = read_entry(&form);
    let opt_outs = &dashboard.engine.opt_outs;
    if let Some(key) = key {
        let (by, account) = (member.by(), member.account.id);
        match opt_outs.add(&by, account, key, Via::Dashboard).await {
            Ok(_) => return Ok(member.redirect_saying(HERE, "added")),
            Err(OptOutError::Store(error)) => return Err(error.into()),
            Err(full @ OptOutError::Full) => input.refuse(NUMBER, full),
        }
    }
    let typed = Typed {
        input: Some(input),
        ..Typed::default()
    };
    page(&dashboard, &member, member.frame(), &query, typed).await
}

async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let (_, Some(key)) = read_entry(&form) else {
        return Err(Failure::Form);
    };
    let sender = match &key.sender {
        Some(sender) => format!("from {sender}"),
        None => "from all senders".to_owned(),
    };
    member.ask(
        &form,
        &Question {
            title: &format!("Remove {} from the opt-outs?", key.recipient),
            text: &format!(
                "The number gets messages {sender} again. Remove it only if its holder agrees."
            ),
            button: "Remove",
            back: HERE,
            is_dangerous: true,
        },
    )?;
    let opt_outs = &dashboard.engine.opt_outs;
    // Somebody else may have removed it already, which is what this person wants, too.
    let by = member.by();
    opt_outs.remove(&by, member.account.id, &key).await?;
    Ok(member.redirect_saying(HERE, "removed"))
}

async fn import(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
    Posted(form): Posted<MAX_IMPORT_BYTES>,
) -> Result<Response, Failure> {
    let text = form.get(CSV).unwrap_or_default();
    let imported = match csv::read(text.as_bytes()) {
        Ok(keys) => add_all(&dashboard, &member, &keys).await,
        Err(problems) => {
            let problems = problems
                .iter()
                .map(|problem| sentence(&problem.to_string()));
            return refuse_import(&dashboard, &member, &query, text, problems.collect()).await;
        }
    };
    match imported {
        Ok(added) => Ok(member.redirect_saying(HERE, &format!("imported-{added}"))),
        Err(OptOutError::Store(error)) => Err(error.into()),
        Err(full @ OptOutError::Full) => {
            let problems = vec![sentence(&full.to_string())];
            refuse_import(&dashboard, &member, &query, text, problems).await
        }
    }
}

async fn add_all(
    dashboard: &Dashboard,
    member: &Member,
    keys: &[OptOutKey],
) -> Result<u64, OptOutError> {
    let (opt_outs, account) = (&dashboard.engine.opt_outs, member.account.id);
    let by = member.by();
    opt_outs.begin_import(&by, account, keys.len()).await?;
    let mut added = 0;
    for step in keys.chunks(IMPORT_STEP) {
        added += opt_outs.import(account, step).await?;
    }
    Ok(added)
}

async fn refuse_import(
    dashboard: &Dashboard,
    member: &Member,
    query: &Query,
    text: &str,
    import_problems: Vec<String>,
) -> Result<Response, Failure> {
    let typed = Typed {
        import_problems,
        import_text: text.to_owned(),
        ..Typed::default()
    };
    page(dashboard, member, member.frame(), query, typed).await
}

/// Streams the whole list.
async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let account = member.account.id;
    let permit = dashboard.downloads.permit(Some(account));
    let permit = permit.map_err(Failure::Page)?;
    let begin = Some((dashboard, permit, None::<OptOutKey>));
    // The permit is held as long as the stream exists.
    let rows = futures_util::stream::unfold(begin, move |state| async move {
        let (dashboard, permit, after) = state?;
        let opt_outs = &dashboard.engine.opt_outs;
        let page = match opt_outs.list(account, after.as_ref(), DOWNLOAD_STEP).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "a download was cut short");
                return Some((Err(error), None));
            }
        };
        let last = page.last()?.key.clone();
        let mut text = String::new();
        for entry in &page {
            csv::push(&mut text, entry);
        }
        Some((Ok(Bytes::from(text)), Some((dashboard, permit, Some(last)))))
    });
    let content_type = "text/csv; charset=utf-8";
    Ok(downloads::stream_text(
        "opt-outs.csv",
        content_type,
        csv::HEADER,
        rows,
    ))
}
