//! The port for counts of what has ended. They are added where messages end, by `count_traffic!`.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{Span, StoreError, TrafficCount, TrafficStore};
use tokio_postgres::Row;

use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::traffic::{CountColumns, first_begin, span_number};

macro_rules! sums {
    ($from:expr) => {
        concat!(
            "SELECT CAST(t.begins AS bigint), t.channel, t.network, t.status, t.error, CAST(sum(t.messages) AS bigint),
                CAST(sum(t.parts) AS bigint), CAST(sum(t.cost_micros) AS bigint)
            FROM ",
            $from,
            " AND t.span = $2 AND t.begins >= $3::bigint AND t.begins < $4::bigint
            GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"
        )
    };
}
const LIST: &str = sums!("traffic AS t WHERE t.account_id = $1");
/// Account by account, each by its part of the key.
const LIST_ALL: &str =
    sums!("account AS a JOIN traffic AS t ON t.account_id = a.id WHERE $1::bigint IS NULL");

#[async_trait]
impl TrafficStore for PostgresStore {
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError> {
        let sql = if account.is_some() { LIST } else { LIST_ALL };
        let (first, end) = (first_begin(span, from), first_begin(span, until));
        let account = account.map(AccountId::as_i64);
        let values: super::Values<'_> = &[&account, &span_number(span), &first, &end];
        self.list("list traffic", sql, values, |row| columns(row)?.count(span))
            .await
    }
}

fn columns(row: &Row) -> Result<CountColumns, Corrupt> {
    Ok(CountColumns {
        begins: column(row, 0)?,
        channel: column(row, 1)?,
        network: column(row, 2)?,
        status: column(row, 3)?,
        error: column(row, 4)?,
        messages: column(row, 5)?,
        parts: column(row, 6)?,
        cost_micros: column(row, 7)?,
    })
}
