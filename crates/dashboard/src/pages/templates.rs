//! Texts that the account saved to send them again.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use domain::template::{BadTemplate, TextTemplate};
use engine::sending::templates::TemplateError;
use http::StatusCode;
use url::form_urlencoded;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::shorten;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};

const HERE: &str = "/dashboard/templates";
const NAME: &str = "name";
const TEXT: &str = "text";
const SHOWN_CHARS: usize = 160;
/// The field of *Send* and *Send to many* with the name of the chosen template.
const CHOSEN: &str = "template";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show).post(save))
        .route("/dashboard/templates/remove", post(remove))
}

#[derive(Template)]
#[template(path = "templates.html")]
struct TemplatesPage {
    frame: Frame,
    input: FormInput,
    rows: Vec<TemplateRow>,
    /// Whether the form changes a template that exists.
    is_change: bool,
}

struct TemplateRow {
    name: String,
    text: String,
    edit: String,
    send: String,
    send_to_many: String,
}

impl TemplateRow {
    fn new(template: &TextTemplate) -> Self {
        let address = |path: &str, field: &str| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair(field, template.name());
            format!("{path}?{}", query.finish())
        };
        Self {
            name: template.name().to_owned(),
            text: shorten(template.text(), SHOWN_CHARS),
            edit: address(HERE, NAME) + "#edit",
            send: address("/dashboard/send", CHOSEN),
            send_to_many: address("/dashboard/bulk", CHOSEN),
        }
    }
}

/// The templates that a form offers.
pub(super) struct TemplateChoice {
    /// The page with the form.
    pub(super) here: &'static str,
    pub(super) templates: Vec<TextTemplate>,
    name: Option<String>,
}

impl TemplateChoice {
    pub(super) fn is_chosen(&self, template: &TextTemplate) -> bool {
        self.name.as_deref() == Some(template.name())
    }

    /// The text of the chosen template.
    pub(super) fn text(&self) -> Option<&str> {
        let chosen = find(&self.templates, self.name.as_deref());
        chosen.map(TextTemplate::text)
    }
}

impl Dashboard {
    /// The templates for a form; `query` may name one.
    pub(super) async fn template_choice(
        &self,
        member: &Member,
        here: &'static str,
        query: Option<&Query>,
    ) -> Result<TemplateChoice, Failure> {
        let name = query.and_then(|query| query.get(CHOSEN));
        Ok(TemplateChoice {
            here,
            templates: self.engine.templates.list(member.account.id).await?,
            name: name.map(str::to_owned),
        })
    }
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let frame = match member.said(&query) {
        Some("saved") => member.frame().with_success("The template was saved."),
        Some("removed") => member.frame().with_success("The template was removed."),
        _ => member.frame(),
    };
    let templates = dashboard.engine.templates.list(member.account.id).await?;
    let chosen = find(&templates, query.get(NAME));
    let field = |field: fn(&TextTemplate) -> &str| chosen.map(field).unwrap_or_default().to_owned();
    let input = FormInput::with_defaults(vec![
        (NAME, field(TextTemplate::name)),
        (TEXT, field(TextTemplate::text)),
    ]);
    Ok(page(frame, input, &templates))
}

/// The template with this name.
fn find<'a>(templates: &'a [TextTemplate], name: Option<&str>) -> Option<&'a TextTemplate> {
    let mut templates = templates.iter();
    templates.find(|template| Some(template.name()) == name)
}

fn page(frame: Frame, input: FormInput, templates: &[TextTemplate]) -> Response {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = TemplatesPage {
        frame,
        is_change: find(templates, input.given(NAME)).is_some(),
        input,
        rows: templates.iter().map(TemplateRow::new).collect(),
    };
    show_page(status, &page)
}

async fn save(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    // Browsers send a line break as two characters.
    let text = form.get(TEXT).unwrap_or_default().replace("\r\n", "\n");
    let name = form.get(NAME).unwrap_or_default();
    let mut input =
        FormInput::with_defaults(vec![(NAME, name.trim().to_owned()), (TEXT, text.clone())]);
    let (templates, account) = (&dashboard.engine.templates, member.account.id);
    match TextTemplate::new(name, &text) {
        Ok(template) => match templates.set(&member.by(), account, &template).await {
            Ok(()) => return Ok(member.redirect_saying(HERE, "saved")),
            Err(TemplateError::Store(error)) => return Err(error.into()),
            Err(full @ TemplateError::Full) => input.refuse(NAME, full),
        },
        // It names the first mistake only, so each field is also checked beside a good one.
        Err(_) => {
            for (name, text) in [(name, "text"), ("name", &text)] {
                match TextTemplate::new(name, text) {
                    Ok(_) => {}
                    Err(problem @ BadTemplate::Name) => input.refuse(NAME, problem),
                    Err(problem @ BadTemplate::Text) => input.refuse(TEXT, problem),
                }
            }
        }
    }
    let saved = templates.list(account).await?;
    Ok(page(member.frame(), input, &saved))
}

async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let name = form.get(NAME).unwrap_or_default();
    let question = Question {
        title: "Remove this template?",
        text: "Its text is deleted. Messages that were sent with it stay as they are.",
        button: "Remove",
        back: HERE,
        is_dangerous: true,
    };
    member.ask(&form, &question)?;
    // Somebody else may have removed it already, which is what this person wants, too.
    let templates = &dashboard.engine.templates;
    templates
        .remove(&member.by(), member.account.id, name)
        .await?;
    Ok(member.redirect_saying(HERE, "removed"))
}
