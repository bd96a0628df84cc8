//! Price lists: the current one, earlier versions, and importing a new one after a preview.

mod preview;

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::billing::Priced;
use domain::ports::{AccountRecord, CatalogueEntry};
use domain::{AccountId, Country};
use engine::catalogue::prices::{Format, PriceList, PriceRow, Prices};
use engine::catalogue::{ImportError, PricePlan, price_kind};
use engine::identity::accounts::AccountError;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use super::in_address;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const MAX_BYTES: usize = 4 * 1024 * 1024;
const SHOWN_ROWS: usize = 100;
const SHOWN_VERSIONS: usize = 20;
const HERE: &str = "/dashboard/operator/prices";

#[derive(Template)]
#[template(path = "operator/prices.html")]
struct PricesPage {
    frame: Frame,
    tabs: Vec<Tab>,
    choice: PriceListChoice,
    search: String,
    is_demonstration: bool,
    version: Option<VersionRow>,
    versions: Vec<VersionRow>,
    rows: Vec<PriceRowView>,
    hidden_rows: Option<String>,
    total: String,
    with_own: Vec<OwnList>,
    import: ImportForm,
    currency: String,
}

struct Tab {
    channel: &'static str,
    address: String,
    is_here: bool,
}

struct PriceListChoice {
    channel: Priced,
    /// `None`: the price list for everyone.
    account: Option<AccountRecord>,
}

struct VersionRow {
    number: u32,
    at: Moment,
    rows: String,
    address: String,
}

struct PriceRowView {
    country: String,
    network: String,
    operator: String,
    rate: String,
}

struct OwnList {
    name: String,
    address: String,
    rows: String,
}

#[derive(Default)]
struct ImportForm {
    text: String,
    problems: Vec<String>,
}

impl PriceListChoice {
    async fn find(
        dashboard: &Dashboard,
        operator: &Operator,
        channel: Option<&str>,
        account: Option<&str>,
    ) -> Result<Self, Failure> {
        let not_found = || Failure::NotFound(Box::new(operator.frame()));
        let channel = match channel {
            None => Priced::default(),
            Some(name) => name.parse().map_err(|_| not_found())?,
        };
        let account = match account {
            None => None,
            Some(name) => match dashboard.engine.accounts.get(name).await {
                Ok(account) => Some(account),
                Err(AccountError::Store(error)) => return Err(error.into()),
                Err(_) => return Err(not_found()),
            },
        };
        Ok(Self { channel, account })
    }

    fn account_id(&self) -> Option<AccountId> {
        self.account.as_ref().map(|account| account.id)
    }

    /// Empty for the price list for everyone.
    fn account_name(&self) -> &str {
        self.account.as_ref().map_or("", |account| &account.name)
    }

    fn address(&self) -> String {
        address(HERE, self.channel, self.account_name())
    }

    fn export_address(&self) -> String {
        address(&format!("{HERE}.csv"), self.channel, self.account_name())
    }

    fn list<'p>(&self, prices: &'p Prices) -> Option<&'p Arc<PriceList>> {
        match self.account_id() {
            None => Some(&prices.list),
            Some(account) => prices.of_account.get(&account),
        }
    }
}

fn address(path: &str, channel: Priced, account: &str) -> String {
    if account.is_empty() {
        return format!("{path}?channel={channel}");
    }
    format!("{path}?channel={channel}&account={}", in_address(account))
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let (channel, account) = (query.get("channel"), query.get("account"));
    let choice = PriceListChoice::find(&dashboard, &operator, channel, account).await?;
    let mut frame = operator.frame();
    if operator.said(&query) == Some("imported") {
        frame = frame.with_success("The list was imported. Every node uses it within seconds.");
    }
    let page = build(&dashboard, frame, choice, &query, ImportForm::default()).await?;
    Ok(show_page(StatusCode::OK, &page))
}

/// Shows a preview, or imports the list after the preview was confirmed.
pub(super) async fn import(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted<MAX_BYTES>,
) -> Result<Response, Failure> {
    let text = form.take("csv");
    let account = form.get("account").filter(|name| !name.is_empty());
    let choice = PriceListChoice::find(&dashboard, &operator, form.get("channel"), account).await?;
    let seen = seen_version(&form);
    let catalogues = &dashboard.engine.catalogues;
    let problems = match plan(&dashboard, &choice, &text).await {
        Err(ImportError::Store(error)) => return Err(error.into()),
        Err(ImportError::Prices(problems)) => problems.iter().map(ToString::to_string).collect(),
        Err(other) => vec![other.to_string()],
        Ok(plan) if plan.leaves_nothing() => {
            vec![
                "It has no rows, so no message could be sent any more. Add at least a default row."
                    .to_owned(),
            ]
        }
        Ok(plan) if seen == Some(plan.previous()) => {
            match catalogues.import_prices(&operator.by(), plan).await {
                Ok(_) => {
                    return Ok(operator.redirect_saying(&choice.address(), "imported"));
                }
                Err(ImportError::Store(error)) => return Err(error.into()),
                Err(other) => vec![other.to_string()],
            }
        }
        Ok(plan) => {
            let page = preview::Preview::new(&dashboard, &operator, &choice, &plan, text, seen);
            return Ok(page.show());
        }
    };
    let frame = operator.frame();
    let import = ImportForm { text, problems };
    let page = build(&dashboard, frame, choice, &Query::default(), import).await?;
    Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// The version that the preview was compared with; `None` before the preview.
fn seen_version(form: &Form) -> Option<u32> {
    form.get("seen")?.parse().ok()
}

/// Checks a list on another thread, because a long one takes a while.
async fn plan(
    dashboard: &Dashboard,
    choice: &PriceListChoice,
    text: &str,
) -> Result<PricePlan, ImportError> {
    let catalogues = dashboard.engine.catalogues.clone();
    let (channel, account) = (choice.channel, choice.account_id());
    let text = text.to_owned();
    let planned = tokio::task::spawn_blocking(move || {
        catalogues.plan_prices(channel, account, &text, Format::Csv)
    });
    planned.await.expect("checking a list does not panic")
}

/// The current list or an earlier version, as CSV.
pub(super) async fn export(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let (channel, account) = (query.get("channel"), query.get("account"));
    let choice = PriceListChoice::find(&dashboard, &operator, channel, account).await?;
    let catalogues = &dashboard.engine.catalogues;
    let csv = match query.get("version") {
        None => {
            let live = catalogues.live();
            let list = choice.list(live.prices(choice.channel));
            list.map_or_else(|| PriceList::default().to_csv(), |list| list.to_csv())
        }
        Some(version) => {
            let kind = price_kind(choice.channel, choice.account_id());
            let found = match version.parse() {
                Ok(version) => catalogues.version(kind, version).await?,
                Err(_) => None,
            };
            found.ok_or_else(|| Failure::NotFound(Box::new(operator.frame())))?
        }
    };
    let attachment = format!("attachment; filename=\"prices-{}.csv\"", choice.channel);
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, &attachment),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, csv).into_response())
}

async fn build(
    dashboard: &Dashboard,
    frame: Frame,
    choice: PriceListChoice,
    query: &Query,
    import: ImportForm,
) -> Result<PricesPage, Failure> {
    let catalogues = &dashboard.engine.catalogues;
    let kind = price_kind(choice.channel, choice.account_id());
    let history = catalogues.history(kind).await?;
    let export = choice.export_address();
    let mut versions = history.iter().take(SHOWN_VERSIONS);
    let versions: Vec<VersionRow> = versions
        .by_ref()
        .map(|one| VersionRow::new(one, &export))
        .collect();
    let (list, is_demonstration, own) = {
        let live = catalogues.live();
        let prices = live.prices(choice.channel);
        let own = prices.of_account.iter();
        let own: Vec<(AccountId, usize)> = own.map(|(id, list)| (*id, list.rows().len())).collect();
        let list = choice.list(prices).cloned().unwrap_or_default();
        (
            list,
            prices.is_demonstration && choice.account.is_none(),
            own,
        )
    };
    let names = dashboard
        .engine
        .accounts
        .names(own.iter().map(|(id, _)| *id))
        .await?;
    let mut with_own: Vec<OwnList> = own
        .iter()
        .filter(|(_, rows)| *rows > 0)
        .filter_map(|(id, rows)| Some(OwnList::new(names.get(id)?, choice.channel, *rows)))
        .collect();
    with_own.sort_by(|a, b| a.name.cmp(&b.name));
    let search = query.text("search").to_lowercase();
    let fits = |row: &&PriceRow| search.is_empty() || searchable(row).contains(&search);
    let fitting: Vec<&PriceRow> = list.rows().iter().filter(fits).collect();
    let hidden = fitting.len().saturating_sub(SHOWN_ROWS);
    Ok(PricesPage {
        frame,
        tabs: Priced::ALL.map(|channel| Tab::new(channel, &choice)).into(),
        search: query.text("search").to_owned(),
        is_demonstration,
        version: history.first().map(|one| VersionRow::new(one, &export)),
        versions,
        rows: fitting
            .iter()
            .take(SHOWN_ROWS)
            .map(|row| PriceRowView::new(row))
            .collect(),
        hidden_rows: (hidden > 0).then(|| count(hidden as u64)),
        total: count(list.rows().len() as u64),
        with_own,
        import,
        currency: dashboard.settings.currency.clone(),
        choice,
    })
}

fn searchable(row: &PriceRow) -> String {
    let shown = PriceRowView::new(row);
    let code = row.country.as_ref().map_or("", Country::as_str);
    format!(
        "{} {code} {} {}",
        shown.country, shown.network, shown.operator
    )
    .to_lowercase()
}

impl Tab {
    fn new(channel: Priced, here: &PriceListChoice) -> Self {
        Self {
            channel: channel.name(),
            address: address(HERE, channel, here.account_name()),
            is_here: channel == here.channel,
        }
    }
}

impl VersionRow {
    fn new(entry: &CatalogueEntry, export: &str) -> Self {
        Self {
            number: entry.version,
            at: entry.at.into(),
            rows: count(entry.rows.into()),
            address: format!("{export}&version={}", entry.version),
        }
    }
}

impl OwnList {
    fn new(name: &str, channel: Priced, rows: usize) -> Self {
        Self {
            name: name.to_owned(),
            address: address(HERE, channel, name),
            rows: count(rows as u64),
        }
    }
}

impl PriceRowView {
    fn new(row: &PriceRow) -> Self {
        let country = row
            .country
            .map_or("All other countries", Country::short_name);
        let mnc = row.mnc.as_deref();
        let network = match (row.mcc, mnc) {
            (Some(mcc), Some(mnc)) => format!("{mcc:03}-{mnc}"),
            _ => String::new(),
        };
        Self {
            country: country.to_owned(),
            network,
            operator: row.operator.clone(),
            rate: row.rate.to_string(),
        }
    }
}
