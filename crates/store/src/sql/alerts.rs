//! Alerts and notifications.

use super::{Sql, sql};

pub(crate) const LIST: Sql = sql!(
    "SELECT topic, subject, account_id, level, since_us, told, told_0_us, told_1_us, told_2_us, data FROM alert
    WHERE CAST(?1 AS BIGINT) IS NULL OR account_id = CAST(?1 AS BIGINT) 
    ORDER BY CASE WHEN account_id = 0 THEN 0 ELSE 1 END, since_us DESC LIMIT ?2"
);
pub(crate) const CREATE: Sql = sql!(
    "INSERT INTO alert (topic, subject, account_id, level, since_us, told, told_0_us, told_1_us, told_2_us, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (topic, subject) DO NOTHING"
);
pub(crate) const CHANGE: Sql = sql!(
    "UPDATE alert SET account_id = ?3, level = ?4, since_us = ?5, told = ?6, told_0_us = ?7, told_1_us = ?8,
        told_2_us = ?9, data = ?10
    WHERE topic = ?1 AND subject = ?2 AND level = ?11 AND since_us = ?12 AND told = ?13"
);
pub(crate) const REMOVE: Sql = sql!(
    "DELETE FROM alert WHERE topic = ?1 AND subject = ?2 AND level = ?3 AND since_us = ?4 AND told = ?5"
);
pub(crate) const NOTIFY: Sql = sql!(
    "INSERT INTO notification (account_id, target, body, created_us, due_us, tries)
    SELECT CAST(?1 AS BIGINT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT), CAST(?4 AS BIGINT), 0
    WHERE (SELECT count(*) FROM notification WHERE target = CAST(?2 AS TEXT)) < 500"
);
/// The first due notification of each target. The condition on the time is repeated outside: another node may have
/// claimed the row in the meantime.
macro_rules! claim {
    () => {
        "UPDATE notification SET due_us = ?2, tries = tries + 1
        WHERE due_us <= ?1 AND id IN (
            SELECT id FROM (
                SELECT id, account_id, row_number() OVER (PARTITION BY account_id = 0 ORDER BY due_us, id) AS place
                FROM (
                    SELECT id, account_id, due_us, row_number() OVER (PARTITION BY target ORDER BY id) AS place
                    FROM notification WHERE due_us <= ?1
                ) AS of_target WHERE place = 1
            ) AS of_kind WHERE place <= CASE WHEN account_id = 0 THEN CAST(?3 AS BIGINT) ELSE CAST(?4 AS BIGINT) END
        )
        RETURNING id, account_id, target, body, created_us, tries"
    };
}
pub(crate) const CLAIM: Sql = sql!(claim!());
/// The others of the same target wait until it is settled.
pub(crate) const CLAIM_AND_HOLD: Sql = sql!(concat!(
    "WITH claimed AS (",
    claim!(),
    "), others AS (
        UPDATE notification SET due_us = ?2
        WHERE target IN (SELECT target FROM claimed) AND id NOT IN (SELECT id FROM claimed)
    )
    SELECT id, account_id, target, body, created_us, tries FROM claimed"
));
pub(crate) const MOVE_OTHERS: Sql =
    sql!("UPDATE notification SET due_us = ?3 WHERE target = ?2 AND id <> ?1");
pub(crate) const RETRY: Sql =
    sql!("UPDATE notification SET due_us = ?3 WHERE id = ?1 AND tries = ?2");
pub(crate) const DONE: Sql = sql!("DELETE FROM notification WHERE id = ?1 AND tries = ?2");
pub(crate) const FIND_SETTING: Sql =
    sql!("SELECT url, email FROM notify_setting WHERE account_id = ?1");
pub(crate) const SET_SETTING: Sql = sql!(
    "INSERT INTO notify_setting (account_id, url, email) VALUES (?1, ?2, ?3)
    ON CONFLICT (account_id) DO UPDATE SET url = excluded.url, email = excluded.email"
);
