//! What monitoring reads.

use super::{Sql, sql};

pub(crate) const LIST_POOLED: Sql = sql!(
    "WITH lane (lane) AS (VALUES (CAST(0 AS SMALLINT)), (CAST(1 AS SMALLINT)), (CAST(2 AS SMALLINT)))
    SELECT p.carrier,
        (SELECT count(*) FROM (SELECT 1 FROM queue AS q WHERE q.owner = -1 - p.id LIMIT ?1) AS few),
        (SELECT min(first_us) FROM (SELECT (SELECT q.due_us FROM queue AS q
            WHERE q.owner = -1 - p.id AND q.lane = lane.lane ORDER BY q.due_us LIMIT 1) AS first_us FROM lane) AS f)
    FROM pool AS p ORDER BY p.id DESC LIMIT 200"
);
pub(crate) const LIST_BALANCES: Sql = sql!(
    "SELECT a.id, a.name, a.credit_limit_micros, coalesce(l.balance_micros, 0), coalesce(l.spent_day, 0),
        coalesce(l.spent_micros, 0), a.low_balance_micros
    FROM account AS a LEFT JOIN ledger AS l ON l.account_id = a.id
        AND l.id = (SELECT max(n.id) FROM ledger AS n WHERE n.account_id = a.id)
    WHERE a.id > ?1 AND NOT a.suspended ORDER BY a.id LIMIT ?2"
);
