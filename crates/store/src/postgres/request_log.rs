//! The port for refused requests.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{RefusedRequest, RequestLogStore, StoreError};

use super::{PostgresStore, Values};
use crate::rows::micros;
use crate::rows::request_log::{number, read_request};
use crate::sql::request_log as sql;

const RECORD: &str = "
    INSERT INTO refused_request (account_id, at_us, token, method, route, status, error, message)
    SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::smallint[],
        $8::text[])
    ON CONFLICT DO NOTHING";
const PRUNE: &str = "
    DELETE FROM refused_request AS r USING (
        SELECT account_id, at_us, row_number() OVER (PARTITION BY account_id ORDER BY at_us DESC) AS place
        FROM refused_request WHERE account_id = ANY($1::bigint[])
    ) AS k
    WHERE k.account_id = r.account_id AND k.at_us = r.at_us AND k.place > $2::bigint";

#[async_trait]
impl RequestLogStore for PostgresStore {
    async fn record_refused_requests(
        &self,
        requests: &[RefusedRequest],
        keep: u32,
    ) -> Result<(), StoreError> {
        fn column<T>(requests: &[RefusedRequest], read: impl Fn(&RefusedRequest) -> T) -> Vec<T> {
            requests.iter().map(read).collect()
        }
        let accounts = column(requests, |request| request.account.as_i64());
        let values: Values<'_> = &[
            &accounts,
            &column(requests, |request| micros(request.at)),
            &column(requests, |request| request.token.clone()),
            &column(requests, |request| request.method.clone()),
            &column(requests, |request| request.route.clone()),
            &column(requests, |request| number(request.status)),
            &column(requests, |request| request.error.map(number)),
            &column(requests, |request| request.message.clone()),
        ];
        self.execute("record refused requests", RECORD, values)
            .await?;
        let values: Values<'_> = &[&accounts, &i64::from(keep)];
        let pruned = self.execute("prune refused requests", PRUNE, values);
        pruned.await.map(drop)
    }

    async fn list_refused_requests(
        &self,
        account: AccountId,
        token: &str,
        limit: u32,
    ) -> Result<Vec<RefusedRequest>, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &token, &i64::from(limit)];
        self.list(
            "list refused requests",
            sql::LIST.postgres,
            values,
            read_request,
        )
        .await
    }
}
