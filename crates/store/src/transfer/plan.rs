//! How a table is copied: its columns, and the statements that read and write them.

use super::tables::{CopyTime, Engine, Table};
use super::value::{Column, Value};
use super::{Row, TransferError};

/// The columns of a table that both databases have.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) table: &'static Table,
    /// The columns of a copied row, in order.
    columns: Vec<String>,
}

/// Which rows and columns to read.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// `SELECT … FROM …`, with the columns of the order at the end.
    pub(crate) select: String,
    /// The condition; `None` for all rows.
    pub(crate) filter: Option<String>,
    /// With the name of the table, because selected values may have the same names.
    pub(crate) order: Vec<String>,
    /// The number of values of a row, without those of the order.
    pub(crate) width: usize,
    pub(crate) page: usize,
}

/// How rows of one table are written.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) table: &'static str,
    /// The columns of the target.
    pub(crate) columns: Vec<String>,
    /// The expressions that are written into them; `?1` is the first value of the row.
    pub(crate) values: Vec<String>,
    /// The indexes of the values that are written unchanged.
    pub(crate) taken: Vec<usize>,
    /// The condition that finds a row by its key; `?1` is the first value of the key.
    pub(crate) by_key: String,
    pub(crate) key: &'static [&'static str],
}

/// The changes of a table in one transaction.
#[derive(Default)]
pub(crate) struct Batch {
    /// The keys of rows that are deleted first.
    pub(crate) deleted: Vec<Vec<Value>>,
    pub(crate) inserted: Vec<Row>,
    size: usize,
}

/// The size of a transaction: at most this many rows, and at most one row beyond this many bytes.
const BATCH_ROWS: usize = 10_000;
const BATCH_BYTES: usize = 8 << 20;

impl Batch {
    pub(crate) fn add(&mut self, row: Row) {
        self.size += row.iter().map(Value::size).sum::<usize>();
        self.inserted.push(row);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.deleted.len() + self.inserted.len() >= BATCH_ROWS || self.size >= BATCH_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.inserted.is_empty()
    }
}

/// The columns of a table in one database.
pub(crate) struct EndpointColumns<'a> {
    pub(crate) engine: Engine,
    pub(crate) columns: &'a [Column],
}

impl EndpointColumns<'_> {
    fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The names of the copied columns: those of the table without its own ones, and those that are computed.
    fn names(&self, table: &'static Table) -> Vec<String> {
        let differences = table.differences(self.engine);
        let is_own = |name: &str| {
            differences.own.contains(&name) || differences.write.iter().any(|(own, _)| *own == name)
        };
        let here = self.columns.iter().map(|column| column.name.as_str());
        let mut names: Vec<String> = here
            .filter(|name| !is_own(name))
            .map(str::to_owned)
            .collect();
        let computed = differences.read.iter().map(|(name, _)| *name);
        for name in computed.filter(|name| self.find(name).is_none()) {
            names.push(name.to_owned());
        }
        names
    }
}

impl Plan {
    /// Matches a table of both databases. A column that only one has and that `tables.rs` does not list is an error,
    /// because its contents would be lost.
    pub(crate) fn new(
        table: &'static Table,
        from: &EndpointColumns<'_>,
        to: &EndpointColumns<'_>,
    ) -> Result<Self, TransferError> {
        let (mut columns, there) = (from.names(table), to.names(table));
        let unknown = |column: &String, why: String| TransferError::UnknownColumn {
            table: table.name,
            column: column.clone(),
            why,
        };
        for (names, others, missing_in) in [(&columns, &there, to), (&there, &columns, from)] {
            if let Some(column) = names.iter().find(|name| !others.contains(name)) {
                let why = format!("{:?} has no such column", missing_in.engine);
                return Err(unknown(column, why));
            }
        }
        for name in &columns {
            let ends = [from.find(name), to.find(name)];
            for column in ends.into_iter().flatten() {
                if column.kind.is_none() {
                    return Err(unknown(name, format!("its type is {}", column.type_name)));
                }
            }
            if let [Some(one), Some(other)] = ends
                && one.kind != other.kind
            {
                let why = format!("{} does not go into {}", one.type_name, other.type_name);
                return Err(unknown(name, why));
            }
        }
        // The key first, so that the beginning of a row is its key.
        columns.sort_by_key(|name| {
            let at = table.key.iter().position(|key| key == name);
            at.unwrap_or(table.key.len())
        });
        Ok(Self { table, columns })
    }

    /// The indexes of a row's values, sorted by the names of their columns.
    #[cfg(test)]
    pub(crate) fn by_name(&self) -> Vec<usize> {
        let mut indexes: Vec<usize> = (0..self.columns.len()).collect();
        indexes.sort_by_key(|&at| &self.columns[at]);
        indexes
    }

    /// The key of a row.
    pub(crate) fn key<'row>(&self, row: &'row [Value]) -> &'row [Value] {
        &row[..self.table.key.len()]
    }

    /// Splits a row of [`Self::whole`] into its values, whether it is settled, and its watched values.
    pub(crate) fn split(&self, mut row: Row) -> (Row, bool, Vec<Value>) {
        let settled = row.pop() == Some(Value::Int(1));
        let watched = match self.table.copy_time {
            CopyTime::Growing { watched, .. } => watched,
            CopyTime::Changing => &[],
        };
        let at = |name: &&str| self.columns.iter().position(|column| column == name);
        let watched = watched
            .iter()
            .filter_map(at)
            .map(|at| row[at].clone())
            .collect();
        (row, settled, watched)
    }

    /// Reads whole rows of the source, and for each whether it is settled.
    pub(crate) fn whole(&self, engine: Engine, only_settled: bool) -> Query {
        let columns = self.columns.iter().map(String::as_str);
        let settled = self.settled();
        let values = columns.map(|column| self.table.expression(engine, column).to_owned());
        let values = values.chain([as_number(settled)]).collect();
        let mut query = self.query(engine, values);
        query.filter = only_settled.then(|| settled.to_owned());
        query
    }

    /// Reads the key of the target's rows, whether they are settled, and their watched values.
    pub(crate) fn narrow(&self, engine: Engine) -> Query {
        let watched = match self.table.copy_time {
            CopyTime::Growing { watched, .. } => watched,
            CopyTime::Changing => &[],
        };
        let expression = |name: &&'static str| self.table.expression(engine, name).to_owned();
        let values = self.table.key.iter().map(expression);
        let values = values
            .chain([as_number(self.settled())])
            .chain(watched.iter().map(expression));
        self.query(engine, values.collect())
    }

    fn settled(&self) -> &'static str {
        match self.table.copy_time {
            CopyTime::Growing { settled, .. } => settled,
            CopyTime::Changing => "TRUE",
        }
    }

    fn query(&self, engine: Engine, values: Vec<String>) -> Query {
        let order = self.table.order(engine).iter();
        let order: Vec<String> = order
            .map(|column| format!("{}.{column}", self.table.name))
            .collect();
        let width = values.len();
        let values: Vec<String> = values.into_iter().chain(order.iter().cloned()).collect();
        Query {
            select: format!(
                "SELECT {} FROM {}",
                values.join(", "),
                self.table.rows(engine)
            ),
            filter: None,
            order,
            width,
            page: self.table.page,
        }
    }

    /// How rows are written into the target.
    pub(crate) fn target(&self, end: &EndpointColumns<'_>) -> Target {
        let computed = self.table.differences(end.engine).write;
        let mut target = Target {
            table: self.table.name,
            columns: Vec::new(),
            values: Vec::new(),
            taken: Vec::new(),
            by_key: String::new(),
            key: self.table.key,
        };
        for (at, name) in self.columns.iter().enumerate() {
            if end.find(name).is_some() {
                target.columns.push(name.clone());
                target.values.push(format!("?{}", at + 1));
                target.taken.push(at);
            }
        }
        let mut conditions = Vec::new();
        for (name, expression) in computed {
            let mut expression = (*expression).to_owned();
            for (at, column) in self.columns.iter().enumerate() {
                expression = expression.replace(&format!("{{{column}}}"), &format!("?{}", at + 1));
            }
            // The key is the beginning of a row, so the same parameter numbers apply to a key.
            conditions.push(format!("{name} = {expression}"));
            target.columns.push((*name).to_owned());
            target.values.push(expression);
        }
        if computed.is_empty() {
            let key = self.table.key.iter().enumerate();
            conditions = key
                .map(|(at, name)| format!("{name} = ?{}", at + 1))
                .collect();
        }
        target.by_key = conditions.join(" AND ");
        target
    }
}

fn as_number(condition: &str) -> String {
    format!("CASE WHEN {condition} THEN 1 ELSE 0 END")
}

#[cfg(test)]
mod tests {
    use super::super::tables::TABLES;
    use super::super::value::Kind;
    use super::*;

    fn columns(list: &[(&str, Option<Kind>)]) -> Vec<Column> {
        let column = |(name, kind): &(&str, Option<Kind>)| Column {
            name: (*name).to_owned(),
            kind: *kind,
            type_name: "TYPE".to_owned(),
        };
        list.iter().map(column).collect()
    }

    fn table(name: &str) -> &'static Table {
        let mut found = TABLES.iter().filter(|table| table.name == name);
        found.next().expect("a table")
    }

    #[test]
    fn an_unknown_column_is_refused() {
        let int = Some(Kind::Int);
        let both = [("hash", Some(Kind::Bytes)), ("expires_us", int)];
        for (name, more, reason) in [
            ("only here", vec![("shoe_size", int)], "no such column"),
            ("unknown type", vec![("expires_us", None)], "its type is"),
            (
                "two types",
                vec![("expires_us", Some(Kind::Text))],
                "does not go into",
            ),
        ] {
            let mut changed: Vec<_> = both.to_vec();
            changed.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
            changed.extend(more);
            let (plain, changed) = (columns(&both), columns(&changed));
            let end = |engine, columns| EndpointColumns { engine, columns };
            for (from, to) in [(&plain, &changed), (&changed, &plain)] {
                let (from, to) = (end(Engine::Sqlite, from), end(Engine::Postgres, to));
                let error = Plan::new(table("sign_in_link"), &from, &to).expect_err(name);
                assert!(error.to_string().contains(reason), "{name}: {error}");
            }
        }
    }

    #[test]
    fn two_columns_become_one_and_one_becomes_two() {
        let int = Some(Kind::Int);
        let one = columns(&[("id", int), ("at_us", int)]);
        let two = columns(&[
            ("at_us", int),
            ("callback_id", int),
            ("number", int),
            ("message_id", int),
        ]);
        let sqlite = EndpointColumns {
            engine: Engine::Sqlite,
            columns: &one,
        };
        let postgres = EndpointColumns {
            engine: Engine::Postgres,
            columns: &two,
        };
        let attempts = table("callback_attempt");
        for (from, to) in [
            (&sqlite, &postgres),
            (&postgres, &sqlite),
            (&sqlite, &sqlite),
        ] {
            let plan = Plan::new(attempts, from, to).expect("both are known");
            let mut columns = plan.columns;
            columns[2..].sort();
            assert_eq!(columns, ["callback_id", "number", "at_us", "message_id"]);
        }
        let plan = Plan::new(attempts, &postgres, &sqlite).expect("known");
        let read = plan.whole(Engine::Sqlite, true);
        assert_eq!(
            read.select,
            "SELECT id >> 20, id & 1048575, at_us, \
             (SELECT c.message_id FROM callback AS c WHERE c.id = callback_attempt.id >> 20), \
             CASE WHEN TRUE THEN 1 ELSE 0 END, callback_attempt.id FROM callback_attempt"
        );
        assert_eq!(
            (read.width, read.order),
            (5, vec!["callback_attempt.id".to_owned()])
        );
        let target = plan.target(&sqlite);
        assert_eq!(target.columns, ["at_us", "id"]);
        assert_eq!(target.values, ["?3", "(?1 << 20) | ?2"]);
        assert_eq!(target.by_key, "id = (?1 << 20) | ?2");
    }
}
