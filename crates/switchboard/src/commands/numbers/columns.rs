//! Where the numbers stand in a CSV file, and what is added to each row.

use anyhow::bail;
use csv::ByteRecord;
use domain::shown::Shown;

use crate::cli::Column;

/// The names under which a column of numbers is found by itself.
const NAMES: [&str; 4] = ["number", "phone", "msisdn", "to"];

/// The columns that are added.
pub(super) const ADDED: [&str; 4] = ["NumberE164", "NumberType", "CountryIso", "Error"];

/// What the first row tells about the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The place of the numbers, from 0.
    pub(super) column: usize,
    /// Whether the first row names the columns.
    pub(super) has_header: bool,
    /// How many columns there are.
    pub(super) width: usize,
}

impl Layout {
    /// Reads it off the first row. That one is a header if it has a column of the right name, or something with a
    /// letter where a number should stand.
    pub(super) fn of(first: &ByteRecord, wanted: Option<&Column>) -> anyhow::Result<Self> {
        let named = match wanted {
            Some(Column::Named(name)) => match place_of(first, &[name]) {
                None => bail!("{}", no_such_column(first, name)),
                found => found,
            },
            Some(Column::At(_)) => None,
            None => place_of(first, &NAMES),
        };
        let column = match (named, wanted) {
            (Some(place), _) => place,
            (None, Some(Column::At(place))) => *place,
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

/// The text of a cell, whatever it is encoded in.
pub(super) fn text(cell: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(cell)
}

/// The place of the first of these names that the row has, in upper or lower case.
fn place_of(row: &ByteRecord, names: &[&str]) -> Option<usize> {
    let is = |cell: &[u8], name: &str| text(cell).trim().to_lowercase() == name.to_lowercase();
    names
        .iter()
        .find_map(|name| row.iter().position(|cell| is(cell, name)))
}

fn no_such_column(first: &ByteRecord, name: &str) -> String {
    let columns: Vec<String> = first
        .iter()
        .map(|cell| Shown(&text(cell)).to_string())
        .collect();
    format!(
        "the first row has no column {}; it has {}. A place from 1 may be given, too",
        Shown(name),
        columns.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(row: &[&str], wanted: Option<&str>) -> Result<(usize, bool), String> {
        let wanted = wanted.map(|text| text.parse::<Column>().expect("any text"));
        Layout::of(&ByteRecord::from(row.to_vec()), wanted.as_ref())
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
    fn a_column_that_is_not_there_is_an_error_that_names_those_that_are() {
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
