//! The columns of a CSV file with numbers.

use anyhow::bail;
use csv::ByteRecord;
use domain::quoted::Quoted;

use crate::cli::Column;

/// The header names of a column with numbers.
const NAMES: [&str; 4] = ["number", "phone", "msisdn", "to"];

pub(super) const ADDED: [&str; 4] = ["NumberE164", "NumberType", "CountryIso", "Error"];

/// The layout of the file, taken from its first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The index of the column with the numbers.
    pub(super) column: usize,
    pub(super) has_header: bool,
    pub(super) width: usize,
}

impl Layout {
    /// Detects the layout. The first row is a header if a column has the right name, or if there is a letter where a
    /// number should be.
    pub(super) fn detect(first: &ByteRecord, wanted: Option<&Column>) -> anyhow::Result<Self> {
        let named = match wanted {
            Some(Column::Named(name)) => match index_of(first, &[name]) {
                None => bail!("{}", no_such_column(first, name)),
                found => found,
            },
            Some(Column::At(_)) => None,
            None => index_of(first, &NAMES),
        };
        let column = match (named, wanted) {
            (Some(index), _) => index,
            (None, Some(Column::At(index))) => *index,
            (None, _) => 0,
        };
        let Some(cell) = first.get(column) else {
            let (wanted, width) = (column + 1, first.len());
            bail!("there is no column {wanted}: the first row has {width}");
        };
        Ok(Self {
            column,
            has_header: named.is_some() || text(cell).chars().any(char::is_alphabetic),
            width: first.len(),
        })
    }
}

/// The text of a cell in any encoding.
pub(super) fn text(cell: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(cell)
}

/// The index of the first of these names in the row, ignoring case.
fn index_of(row: &ByteRecord, names: &[&str]) -> Option<usize> {
    let is = |cell: &[u8], name: &str| text(cell).trim().to_lowercase() == name.to_lowercase();
    names
        .iter()
        .find_map(|name| row.iter().position(|cell| is(cell, name)))
}

fn no_such_column(first: &ByteRecord, name: &str) -> String {
    let columns: Vec<String> = first
        .iter()
        .map(|cell| Quoted(&text(cell)).to_string())
        .collect();
    format!(
        "the first row has no column {}; it has {}. A position from 1 is possible, too",
        Quoted(name),
        columns.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(row: &[&str], wanted: Option<&str>) -> Result<(usize, bool), String> {
        let wanted = wanted.map(|text| text.parse::<Column>().expect("any text"));
        Layout::detect(&ByteRecord::from(row.to_vec()), wanted.as_ref())
            .map(|layout| (layout.column, layout.has_header))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_row_tells_where_the_numbers_are() {
        for (row, wanted, expected) in [
            (&["name", "Phone"][..], None, (1, true)),
            (&["to", "number"], None, (1, true)),
            (&[" MSISDN ", "x"], None, (0, true)),
            (&["customer", "x"], None, (0, true)),
            (&["20000001", "x"], None, (0, false)),
            (&["", "x"], None, (0, false)),
            (&["name", "Tālrunis"], Some("tālrunis"), (1, true)),
            (&["phone", "mobile 2"], Some("2"), (1, true)),
            (&["Ann", "20000001"], Some("2"), (1, false)),
        ] {
            assert_eq!(layout(row, wanted), Ok(expected), "{row:?} {wanted:?}");
        }
    }

    #[test]
    fn a_missing_column_is_an_error_that_lists_the_columns() {
        for (wanted, fragment) in [
            ("fax", "no column 'fax'; it has 'name', 'phone'"),
            ("3", "no column 3: the first row has 2"),
            ("0", "from 1"),
        ] {
            let error = layout(&["name", "phone"], Some(wanted)).expect_err(wanted);
            assert!(error.contains(fragment), "{wanted}: {error}");
        }
    }
}
