//! AI clients that may act for the account.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::billing::{RuleChange, TextRoles};
use domain::ports::GrantRecord;
use domain::{GrantId, Role};
use engine::identity::accounts::AccountError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::permissions::Offer;
use crate::kit::session::{Admin, Posted};

/// A client in the list and on the page that confirms its disconnection.
pub(super) struct ClientRow {
    pub(super) id: u64,
    pub(super) name: String,
    /// The address of its metadata document.
    pub(super) described_at: Option<String>,
    pub(super) scopes: Vec<Offer>,
    pub(super) since: Moment,
    pub(super) last_used: Option<Moment>,
    pub(super) granted_by: Option<String>,
    /// What it may spend on one day.
    pub(super) daily_cap: Option<String>,
}

impl From<GrantRecord> for ClientRow {
    fn from(grant: GrantRecord) -> Self {
        let is_address = grant.client_id.starts_with("https://");
        Self {
            id: grant.id.get(),
            name: grant.client_name.to_string(),
            described_at: is_address.then_some(grant.client_id),
            scopes: grant
                .scopes
                .iter()
                .map(|scope| Offer::new(scope, true))
                .collect(),
            since: grant.created_at.into(),
            last_used: grant.last_used_at.map(Moment::from),
            granted_by: grant.granted_by.map(|email| email.to_string()),
            daily_cap: grant.daily_cap.map(|cap| cap.to_string()),
        }
    }
}

#[derive(Template)]
#[template(path = "tokens/disconnect.html")]
struct DisconnectPage {
    frame: Frame,
    client: ClientRow,
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(admin.frame()));
    let id: GrantId = id.parse().map_err(|_| missing())?;
    let grants = &dashboard.engine.grants;
    let connected = grants.list_connected(admin.account.id).await?;
    let grant = connected.into_iter().find(|grant| grant.id == id);
    let page = DisconnectPage {
        frame: admin.frame(),
        client: grant.ok_or_else(missing)?.into(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn disconnect(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
    _form: Posted,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(admin.frame()));
    let id: GrantId = id.parse().map_err(|_| missing())?;
    let grants = &dashboard.engine.grants;
    if !grants.disconnect(&admin.by(), admin.account.id, id).await? {
        return Err(missing());
    }
    Ok(admin.redirect_saying(super::HERE, "disconnected"))
}

/// Sets which roles see texts.
pub(super) async fn set_texts(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let question = Question {
        title: "Change who sees texts?",
        text: "The chosen roles see the texts of all messages of this account; the others do not.",
        button: "Save",
        back: super::HERE,
        is_dangerous: false,
    };
    admin
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let is_chosen = |role: &Role| form.get(&format!("texts_{role}")).is_some();
    let chosen: Vec<Role> = Role::ALL.into_iter().filter(is_chosen).collect();
    let change = RuleChange::TextsFor(TextRoles::only(chosen));
    set_rule(&dashboard, &admin, change).await?;
    Ok(admin.redirect_saying(super::HERE, "texts"))
}

pub(super) async fn set_consent(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let only = form.get("admins_consent_only").is_some();
    set_rule(&dashboard, &admin, RuleChange::AdminsConsentOnly(only)).await?;
    let said = if only { "admins" } else { "everybody" };
    Ok(admin.redirect_saying(super::HERE, said))
}

async fn set_rule(dashboard: &Dashboard, admin: &Admin, change: RuleChange) -> Result<(), Failure> {
    let accounts = &dashboard.engine.accounts;
    let by = admin.by();
    let set = accounts.set_rules(&by, &admin.account.name, |rules| {
        change.clone().apply(rules);
    });
    match set.await {
        Ok(_) => Ok(()),
        Err(AccountError::Store(error)) => Err(error.into()),
        Err(_) => Err(Failure::NotFound(Box::new(admin.frame()))),
    }
}
