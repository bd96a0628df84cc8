//! People: of an account for its admins, everybody for operators.

mod actions;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::person::Membership;
use domain::ports::{InvitationRecord, PersonRecord, Purpose, StoreError};
use domain::{AccountId, PersonId, Role};
use engine::identity::people::PeopleScope;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show};
use crate::kit::query::Query;
use crate::kit::session::{Admin, Operator, Posted, Session};
use actions::FormResult;

const ROWS: u32 = 50;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(OWN.path, get(show_own).post(act_on_own))
        .route(ALL.path, get(show_all).post(act_on_all))
}

/// The differences between the two pages.
#[derive(Clone, Copy)]
struct View {
    path: &'static str,
    title: &'static str,
    lead: &'static str,
    is_for_all: bool,
}

const OWN: View = View {
    path: "/dashboard/settings/people",
    title: "People",
    lead: "People who can sign in to this account. Admins manage it; members use it.",
    is_for_all: false,
};
const ALL: View = View {
    path: "/dashboard/operator/people",
    title: "All people",
    lead: "Everyone who can sign in. Operators run the service; admins and members belong to an account.",
    is_for_all: true,
};

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    frame: Frame,
    view: View,
    /// An invitation link, shown once.
    link: Option<Link>,
    typed: InviteForm,
    roles: Vec<Role>,
    people: Vec<PersonRow>,
    invitations: Vec<InvitationRow>,
    older: Option<String>,
}

struct Link {
    email: String,
    address: String,
    until: Moment,
    /// What happened to the e-mail with it; `None` if none are sent here.
    mailed: Option<Result<(), String>>,
}

#[derive(Default)]
struct InviteForm {
    email: String,
    role: String,
    account: String,
    problem: Option<String>,
}

struct PersonRow {
    id: u64,
    email: String,
    role: Role,
    account: String,
    /// Further accounts; only operators see them.
    further: Vec<FurtherAccount>,
    has_second_factor: bool,
    created: Moment,
    seen: Option<Moment>,
    is_you: bool,
    is_within_reach: bool,
}

struct FurtherAccount {
    id: AccountId,
    name: String,
    role: Role,
}

struct InvitationRow {
    email: String,
    what: String,
    account_id: Option<AccountId>,
    account: String,
    until: Moment,
}

async fn show_own(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
) -> Result<Response, Failure> {
    let scope = PeopleScope::Account(admin.account.id);
    let done = FormResult::nothing(admin.frame());
    page(&dashboard, &admin, OWN, scope, &query, done).await
}

async fn show_all(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let done = FormResult::nothing(operator.frame());
    page(
        &dashboard,
        &operator,
        ALL,
        PeopleScope::Everybody,
        &query,
        done,
    )
    .await
}

async fn act_on_own(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let scope = PeopleScope::Account(admin.account.id);
    let done = actions::run(&dashboard, &admin, scope, form).await?;
    page(&dashboard, &admin, OWN, scope, &query, done).await
}

async fn act_on_all(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let scope = PeopleScope::Everybody;
    let done = actions::run(&dashboard, &operator, scope, form).await?;
    page(&dashboard, &operator, ALL, scope, &query, done).await
}

async fn page(
    dashboard: &Dashboard,
    session: &Session,
    view: View,
    scope: PeopleScope,
    query: &Query,
    done: FormResult,
) -> Result<Response, Failure> {
    let people = &dashboard.engine.people;
    let after = query.get("after").and_then(|id| id.parse().ok());
    let mut records = people.list(scope, after, ROWS + 1).await?;
    let is_more = records.len() > ROWS as usize;
    records.truncate(ROWS as usize);
    let last = records.last().map(|record| record.person.id);
    let waiting = people.list_invitations(scope).await?;
    // Admins must not see the other accounts of their people.
    let further = match scope {
        PeopleScope::Everybody => people.list_memberships(&records).await?,
        PeopleScope::Account(_) => Vec::new(),
    };
    let accounts = records.iter().map(|record| record.person.account);
    let accounts = accounts.chain(waiting.iter().map(|record| record.account));
    let accounts = accounts.flatten();
    let accounts: BTreeSet<AccountId> = accounts
        .chain(further.iter().map(|further| further.account))
        .collect();
    let names = dashboard.account_names(accounts).await?;
    let you = session.signed_in.person().map(|person| person.id);
    let next = |id: PersonId| query.address_with("after", Some(&id.to_string()));
    let page = PeoplePage {
        frame: done.frame,
        view,
        link: done.link,
        typed: done.typed,
        roles: Role::ALL
            .into_iter()
            .filter(|role| view.is_for_all || *role != Role::Operator)
            .collect(),
        older: last.filter(|_| is_more).map(next),
        people: records
            .into_iter()
            .map(|record| PersonRow::new(record, &further, view, you, &names))
            .collect(),
        invitations: waiting
            .into_iter()
            .map(|record| InvitationRow::new(&record, &names))
            .collect(),
    };
    let status = if done.is_refused {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    Ok(show(status, &page))
}

pub(super) type Names = HashMap<AccountId, String>;

impl PersonRow {
    fn new(
        record: PersonRecord,
        further: &[Membership],
        view: View,
        you: Option<PersonId>,
        names: &Names,
    ) -> Self {
        let person = record.person;
        let further = || further.iter().filter(|further| further.person == person.id);
        let seen = further().filter_map(|further| further.seen_at);
        Self {
            further: further()
                .map(|further| FurtherAccount {
                    id: further.account,
                    name: name(Some(further.account), names),
                    role: further.role,
                })
                .collect(),
            seen: seen.chain(record.seen_at).max().map(Moment::from),
            id: person.id.get(),
            email: person.email.to_string(),
            role: person.role,
            account: name(person.account, names),
            has_second_factor: record.has_second_factor,
            created: record.created_at.into(),
            is_you: you == Some(person.id),
            is_within_reach: view.is_for_all || person.role != Role::Operator,
        }
    }
}

impl InvitationRow {
    fn new(record: &InvitationRecord, names: &Names) -> Self {
        let what = match record.invitation.purpose {
            Purpose::Join { role, .. } => format!("becomes {role}"),
            Purpose::NewPassword(_) => "sets a new password".to_owned(),
        };
        Self {
            email: record.invitation.email.to_string(),
            what,
            account_id: record.account,
            account: name(record.account, names),
            until: record.expires.into(),
        }
    }
}

fn name(account: Option<AccountId>, names: &Names) -> String {
    let name = account.and_then(|account| names.get(&account));
    name.cloned().unwrap_or_default()
}

impl Dashboard {
    pub(super) async fn account_names(
        &self,
        accounts: BTreeSet<AccountId>,
    ) -> Result<Names, StoreError> {
        let mut names = Names::new();
        for account in accounts {
            let found = self.engine.accounts.find_by_id(account).await?;
            let name = found.map_or_else(|| account.to_string(), |found| found.name);
            names.insert(account, name);
        }
        Ok(names)
    }
}
