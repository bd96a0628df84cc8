//! Compares counts and sums of source and target.

use std::collections::BTreeMap;

use super::TransferError;
use super::endpoint::Endpoint;
use super::tables::{Engine, TABLES, Table};

/// A count or sum of both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub table: &'static str,
    /// `rows`, `sum of …`, `checksum of …` or `rows with …`.
    pub what: String,
    pub source: i64,
    pub target: i64,
}

impl Checked {
    pub fn is_equal(&self) -> bool {
        self.source == self.target
    }
}

/// Counts and adds up everything in both databases.
pub(super) async fn check(
    source: &mut Endpoint,
    target: &mut Endpoint,
) -> Result<Vec<Checked>, TransferError> {
    let mut checked = Vec::new();
    for table in TABLES {
        let (source, target) = tokio::try_join!(count(source, table), count(target, table))?;
        let mut both: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        for (what, number) in source {
            both.entry(what).or_default().0 = number;
        }
        for (what, number) in target {
            both.entry(what).or_default().1 = number;
        }
        checked.extend(
            both.into_iter()
                .map(|((_, what), (source, target))| Checked {
                    table: table.name,
                    what,
                    source,
                    target,
                }),
        );
    }
    if checked.iter().all(Checked::is_equal) {
        Ok(checked)
    } else {
        Err(TransferError::Differs(checked))
    }
}

/// IDs are large: their sum would overflow.
const MODULUS: i64 = 1_000_003;

fn is_id(column: &str) -> bool {
    column.ends_with("id")
}

fn name(sum: &str) -> String {
    if is_id(sum) {
        format!("checksum of {sum}")
    } else {
        format!("sum of {sum}")
    }
}

/// The position of a count in the list, and its name.
type CountKey = (usize, String);

/// Runs one statement for a table: the number of rows and the sums of each group.
async fn count(
    endpoint: &mut Endpoint,
    table: &'static Table,
) -> Result<Vec<(CountKey, i64)>, TransferError> {
    let rows = endpoint
        .numbers(statement(endpoint.engine(), table))
        .await?;
    let mut found: BTreeMap<CountKey, i64> = BTreeMap::new();
    found.insert((0, "rows".to_owned()), 0);
    for (at, sum) in table.sums.iter().enumerate() {
        found.insert((at + 1, name(sum)), 0);
    }
    for row in rows {
        let (group, numbers) = row.split_at(table.by.len());
        let mut numbers = numbers.iter().map(|number| number.unwrap_or_default());
        let rows = numbers.next().unwrap_or_default();
        let names = std::iter::once("rows".to_owned());
        let names = names.chain(table.sums.iter().map(|sum| name(sum)));
        let all = std::iter::once(rows).chain(numbers);
        for ((at, name), number) in names.enumerate().zip(all) {
            let total = found.entry((at, name)).or_default();
            *total = total.wrapping_add(number);
        }
        if !group.is_empty() {
            let group = table.by.iter().zip(group).map(|(by, value)| match value {
                Some(value) => format!("{by} {value}"),
                None => format!("no {by}"),
            });
            let group = group.collect::<Vec<_>>().join(", ");
            found.insert((table.sums.len() + 1, format!("rows with {group}")), rows);
        }
    }
    Ok(found.into_iter().collect())
}

fn statement(engine: Engine, table: &Table) -> String {
    let number = |column: &&str| format!("CAST({} AS BIGINT)", table.expression(engine, column));
    let by: Vec<String> = table.by.iter().map(number).collect();
    let sums = table.sums.iter().map(|column| {
        let value = table.expression(engine, column);
        let value = if is_id(column) {
            format!("({value}) % {MODULUS}")
        } else {
            value.to_owned()
        };
        format!("CAST(coalesce(sum({value}), 0) AS BIGINT)")
    });
    let values: Vec<String> = by
        .iter()
        .cloned()
        .chain(["CAST(count(*) AS BIGINT)".to_owned()])
        .chain(sums)
        .collect();
    let mut sql = format!("SELECT {} FROM {}", values.join(", "), table.rows(engine));
    if !by.is_empty() {
        let places: Vec<String> = (1..=by.len()).map(|at| at.to_string()).collect();
        sql = format!("{sql} GROUP BY {}", places.join(", "));
    }
    sql
}
