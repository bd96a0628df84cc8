//! Messages from handsets.

use super::{Sql, sql};

pub(crate) const ADD_NUMBER: Sql = sql!(
    "INSERT INTO inbound_number (digits, keyword, number, word, account_id, url) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (digits, keyword) DO NOTHING"
);
pub(crate) const LIST_NUMBERS: Sql = sql!(
    "SELECT n.number, n.word, n.account_id, n.url, a.name, a.inbound_url
    FROM inbound_number AS n JOIN account AS a ON a.id = n.account_id ORDER BY n.digits, n.keyword"
);
pub(crate) const SET_URL: Sql = sql!("UPDATE account SET inbound_url = ?2 WHERE id = ?1");

macro_rules! columns {
    () => {
        "id, account_id, carrier, sender, number, body, coding, udh, network, parts, keyword, in_reply_to, incomplete,
            received_us, price_micros"
    };
}
pub(crate) use columns;

pub(crate) const STORE: Sql = sql!(concat!(
    "INSERT INTO inbound (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
));
pub(crate) const FIND: Sql = sql!(concat!(
    "SELECT ",
    columns!(),
    " FROM inbound WHERE id = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR account_id = CAST(?2 AS BIGINT))"
));
macro_rules! list {
    ($owner:literal) => {
        sql!(concat!(
            "SELECT ",
            columns!(),
            " FROM inbound WHERE ",
            $owner,
            " AND id < ?3 AND (CAST(?4 AS TEXT) IS NULL OR number = CAST(?4 AS TEXT)) AND received_us >= ?5
                AND received_us < ?6
            ORDER BY id DESC LIMIT ?7"
        ))
    };
}
pub(crate) const LIST_OF_ACCOUNT: Sql =
    list!("account_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR sender = CAST(?2 AS TEXT))");
pub(crate) const LIST_OF_SENDER: Sql = list!("account_id = ?1 AND sender = ?2");
pub(crate) const LIST_UNCLAIMED: Sql = list!(
    "account_id IS NULL AND CAST(?1 AS BIGINT) IS NULL
        AND (CAST(?2 AS TEXT) IS NULL OR sender = CAST(?2 AS TEXT))"
);
pub(crate) const LIST_ALL: Sql =
    list!("CAST(?1 AS BIGINT) IS NULL AND (CAST(?2 AS TEXT) IS NULL OR sender = CAST(?2 AS TEXT))");

macro_rules! of_key {
    () => {
        "carrier = ?1 AND sender = ?2 AND number = ?3 AND reference = ?4 AND total = ?5"
    };
}
/// The newest set, and whether it has this part.
pub(crate) const NEWEST_SET: Sql = sql!(concat!(
    "SELECT set_number, max(CASE WHEN sequence = ?6 THEN 1 ELSE 0 END) FROM inbound_part WHERE ",
    of_key!(),
    " GROUP BY set_number ORDER BY set_number DESC LIMIT 1"
));
pub(crate) const STORE_PART: Sql = sql!(
    "INSERT INTO inbound_part (carrier, sender, number, reference, total, set_number, sequence, alphabet, octets, udh,
        received_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
);
pub(crate) const FIND_PARTS: Sql = sql!(concat!(
    "SELECT set_number, sequence, alphabet, octets, udh, received_us FROM inbound_part WHERE ",
    of_key!(),
    " ORDER BY set_number, sequence"
));
pub(crate) const LIST_SETS: Sql = sql!(
    "SELECT carrier, sender, number, reference, total, set_number FROM inbound_part
    GROUP BY carrier, sender, number, reference, total, set_number
    HAVING count(*) = total OR min(received_us) <= ?1 LIMIT ?2"
);
pub(crate) const COUNT_PARTS: Sql = sql!(concat!(
    "SELECT count(*) FROM inbound_part WHERE ",
    of_key!(),
    " AND set_number = ?6"
));
pub(crate) const DELETE_PARTS: Sql = sql!(concat!(
    "DELETE FROM inbound_part WHERE ",
    of_key!(),
    " AND set_number = ?6"
));

/// Texts from and to a number that wait for parts.
pub(crate) const LIST_SETS_OF: Sql = sql!(
    "SELECT carrier, sender, number, reference, total, set_number FROM inbound_part WHERE sender = ?1 OR number = ?1
    GROUP BY carrier, sender, number, reference, total, set_number LIMIT ?2"
);
pub(crate) const DELETE_PARTS_OF: Sql =
    sql!("DELETE FROM inbound_part WHERE sender = ?1 OR number = ?1");

/// The same columns as the search for old texts of messages reads.
pub(crate) const LIST_TEXTS: Sql = sql!(
    "SELECT id, received_us, received_us, length(body) > 0 FROM inbound WHERE id > ?1 ORDER BY id LIMIT ?2"
);
pub(crate) const IS_WAITING: Sql =
    sql!("SELECT EXISTS (SELECT 1 FROM callback WHERE message_id = ?1 AND kind = 3 AND state = 0)");

pub(crate) const MOVE_COPY: Sql = sql!(
    "UPDATE inbound_copy SET session = ?3, number = ?4, node_id = ?5, ended = FALSE, at_us = ?6
    WHERE session = ?1 AND number = ?2"
);
pub(crate) const CONFIRM_COPY: Sql =
    sql!("DELETE FROM inbound_copy WHERE session = ?1 AND number = ?2");
pub(crate) const END_SESSION: Sql = sql!("UPDATE inbound_copy SET ended = TRUE WHERE session = ?1");
