//! Fills every column of every table.

use std::fmt::Write as _;

use domain::encryption::SALT_BYTES;
use domain::ports::CatalogueKind;

use super::super::endpoint::Endpoint;
use super::super::tables::{NEVER_EMPTY, TABLES};
use super::super::value::{Column, Kind};
use super::keys;
use crate::rows::encrypted::{plan_context, secret_context, totp_context};

/// Enough rows to cover all cases below.
const ROWS: i64 = 40;

/// Half of the IDs contain a day, as `PostgreSQL` reserves them.
fn message_id(row: i64) -> i64 {
    match row {
        ..=20 => row,
        _ => ((300 + row % 3) << 32) + row,
    }
}

/// A number or Boolean that fits all columns of that name.
fn number(table: &str, column: &str, row: i64) -> i64 {
    match (table, column) {
        (
            _,
            "coding_given"
            | "suspended"
            | "approved_senders_only"
            | "admins_consent_only"
            | "ported_numbers"
            | "incomplete"
            | "ended",
        ) => row % 2,
        ("queue" | "callback_queue", "owner") => row % 3 - 1,
        ("callback_attempt", "id") => (row << 20) | (row % 5 + 1),
        ("callback", "state") => row % 3,
        ("message", "id") | (_, "message_id") => message_id(row),
        (_, name) if name.ends_with("_us") || name.ends_with("_micros") => {
            1_790_000_000_000_000 + row
        }
        (_, "recipient") => 37_120_000_000 + row,
        _ => row,
    }
}

/// Nullable columns are NULL in some rows.
fn is_empty(table: &str, column: &str, row: i64) -> bool {
    const OPTIONAL: &[(&str, &str)] = &[
        ("message", "final_us"),
        ("message", "status"),
        ("message", "udh"),
        ("message", "seen_us"),
        ("message", "result"),
        ("message", "network"),
        ("transit", "tail"),
        ("transit", "status"),
        ("early_receipt", "report"),
        ("early_receipt", "network"),
        ("callback", "url"),
        ("inbound", "account_id"),
        ("inbound", "in_reply_to"),
        ("callback", "payload"),
        ("sender", "reason"),
        ("person", "totp_secret"),
        ("ledger", "note"),
        ("audit", "address"),
        ("token", "expires_us"),
        ("smpp_user", "max_binds"),
        ("smpp_user", "revoked_us"),
    ];
    match (table, column) {
        // A session belongs to a person or to an account.
        ("session", "account_id") => row % 2 == 0,
        ("session", "person_id") => row % 2 == 1,
        pair => OPTIONAL.contains(&pair) && row % 3 == 0,
    }
}

fn literal(table: &str, column: &Column, row: i64) -> String {
    let name = column.name.as_str();
    if is_empty(table, name, row) {
        return "NULL".to_owned();
    }
    if let Some(encrypted) = encrypted(table, name, row) {
        return encrypted;
    }
    match column.kind.expect("a known type") {
        Kind::Int => number(table, name, row).to_string(),
        Kind::Bytes => format!("X'00FF{row:04X}'"),
        Kind::Text => format!("'{name} ''ä'' {row}'"),
    }
}

/// A value of an encrypted column.
fn encrypted(table: &str, column: &str, row: i64) -> Option<String> {
    match (table, column) {
        ("account", "callback_secret" | "former_secret") => {
            let context = secret_context(&format!("name 'ä' {row}"));
            let text = keys().encrypt_text(&context, column, [7; SALT_BYTES]);
            Some(format!("'{text}'"))
        }
        ("person", "totp_secret" | "totp_offered") => {
            let value = keys().encrypt(&totp_context(row), &[7; 20], [7; SALT_BYTES]);
            Some(format!("X'{}'", hex(&value)))
        }
        ("catalogue", "content") if row == i64::from(CatalogueKind::Plan.numbers().0) => {
            let context = plan_context(u32::try_from(row).expect("small"));
            let text = keys().encrypt_text(&context, column, [7; SALT_BYTES]);
            Some(format!("'{text}'"))
        }
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02X}").expect("a text takes everything");
        text
    })
}

pub(super) async fn fill(file: &mut Endpoint) {
    for table in TABLES.iter().map(|table| table.name) {
        let columns = file.columns(table).await.expect("columns");
        if table == "service_key" {
            let keys = keys();
            let proof = hex(&keys.proof([7; SALT_BYTES]));
            let name = format!(
                "INSERT INTO service_key (one, key_id, proof) VALUES (1, '{}', X'{proof}')",
                keys.active()
            );
            file.execute(name).await.expect("named");
            continue;
        }
        if NEVER_EMPTY.contains(&table) {
            let column = &columns[0].name;
            let set = format!("UPDATE {table} SET {column} = {}", message_id(1235));
            file.execute(set).await.expect("set");
            continue;
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        for row in 1..=ROWS {
            let values: Vec<String> = columns
                .iter()
                .map(|column| literal(table, column, row))
                .collect();
            let insert = format!(
                "INSERT INTO {table} ({}) VALUES ({})",
                names.join(", "),
                values.join(", ")
            );
            let inserted = file.execute(insert).await;
            inserted.unwrap_or_else(|error| panic!("{table}: {error:?}"));
        }
    }
}
