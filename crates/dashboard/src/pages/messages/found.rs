//! All messages that a search finds: as a file, and added up.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use domain::AccountId;
use domain::ports::{MessageSummary, StoreError};
use engine::reading::found::{self, Found, FoundTotals, MAX_TOTAL, Sum};

use super::filter::Filters;
use super::list::Reader;
use crate::Dashboard;
use crate::kit::downloads;
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, StateLabel, count};
use crate::kit::query::Query;
use crate::kit::session::{Member, Operator};

pub(super) const FILE: &str = "/dashboard/messages/found.csv";
pub(super) const ALL_FILE: &str = "/dashboard/operator/messages/found.csv";
/// The field that asks for the totals.
pub(super) const TOTALS: &str = "totals";

/// The totals of all messages that a search finds.
pub(super) struct Totals {
    pub(super) states: Vec<(StateLabel, SumView)>,
    pub(super) all: SumView,
    /// How many messages were added up, if there are more.
    pub(super) cut: Option<String>,
}

pub(super) struct SumView {
    pub(super) messages: String,
    pub(super) parts: String,
    pub(super) price: Amount,
}

impl SumView {
    fn new(sum: Sum, currency: &str) -> Self {
        Self {
            messages: count(sum.messages),
            parts: count(sum.parts),
            price: Amount::new(sum.price, currency),
        }
    }
}

pub(super) async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let filters = dashboard.filters(&query.without("account"));
    dashboard.found_file(Reader::member(&member), &filters)
}

pub(super) async fn download_all(
    State(dashboard): State<Arc<Dashboard>>,
    _: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let (filters, account) = dashboard.read_filters(&query).await?;
    dashboard.found_file(Reader::Operator(account), &filters)
}

impl Dashboard {
    /// Streams the messages that a search finds, the newest first, without their texts.
    fn found_file(self: Arc<Self>, reader: Reader, filters: &Filters) -> Result<Response, Failure> {
        if !filters.problems.is_empty() {
            return Err(Failure::Form);
        }
        let permit = self.downloads.permit(reader.holder());
        let permit = permit.map_err(Failure::Page)?;
        let found = Found::new(filters.of(reader.account()));
        // The permit is held as long as the stream exists.
        let begin = Some((self, permit, found, BTreeMap::new()));
        let rows = futures_util::stream::unfold(begin, |state| async {
            let (dashboard, permit, mut found, mut names) = state?;
            match dashboard.found_lines(&mut found, &mut names).await {
                Ok(Some(lines)) => {
                    let next = Some((dashboard, permit, found, names));
                    Some((Ok(Bytes::from(lines)), next))
                }
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(%error, "a download was cut short");
                    Some((Err(error), None))
                }
            }
        });
        Ok(downloads::stream_text(
            "messages.csv",
            "text/csv; charset=utf-8",
            found::header(),
            rows,
        ))
    }

    async fn found_lines(
        &self,
        found: &mut Found,
        names: &mut BTreeMap<AccountId, String>,
    ) -> Result<Option<String>, StoreError> {
        let Some(messages) = found.next(&self.engine.history).await? else {
            return Ok(None);
        };
        self.learn_names(&messages, names).await?;
        let reference = self.engine.catalogues.live().reference.clone();
        let currency = &self.settings.currency;
        Ok(Some(found::lines(&messages, names, currency, &reference)))
    }

    async fn learn_names(
        &self,
        messages: &[MessageSummary],
        names: &mut BTreeMap<AccountId, String>,
    ) -> Result<(), StoreError> {
        for id in messages.iter().map(|message| message.account) {
            if names.contains_key(&id) {
                continue;
            }
            let account = self.engine.accounts.find_by_id(id).await?;
            names.insert(id, account.map(|account| account.name).unwrap_or_default());
        }
        Ok(())
    }

    /// The totals, where the page is asked for them.
    pub(super) async fn found_totals(
        &self,
        reader: Reader,
        filters: &Filters,
        query: &Query,
    ) -> Result<Option<Totals>, Failure> {
        if query.get(TOTALS).is_none() || !filters.problems.is_empty() {
            return Ok(None);
        }
        let permit = self.downloads.permit(reader.holder());
        let _permit = permit.map_err(Failure::Page)?;
        let filter = filters.of(reader.account());
        let totals = FoundTotals::read(&self.engine.history, filter).await?;
        let currency = &self.settings.currency;
        let states = totals.states.into_iter();
        Ok(Some(Totals {
            states: states
                .map(|(state, sum)| (StateLabel(state.name()), SumView::new(sum, currency)))
                .collect(),
            all: SumView::new(totals.all, currency),
            cut: totals.is_cut.then(|| count(MAX_TOTAL)),
        }))
    }
}
