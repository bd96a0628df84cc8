//! Cells of CSV files that programs and spreadsheets read.

use crate::catalogue::prices::push_cell;

/// Writes a row by RFC 4180. A cell that a spreadsheet would run as a formula gets a `'` in front. Phone numbers and
/// amounts are written as they are: a sign and digits are no formula.
pub(crate) fn push_row(csv: &mut String, cells: &[&str]) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            csv.push(',');
        }
        if is_number(cell) {
            csv.push_str(cell);
        } else {
            push_cell(csv, cell);
        }
    }
    csv.push_str("\r\n");
}

fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    let plain = |b: u8| b.is_ascii_digit() || b == b'.';
    !digits.is_empty() && digits.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_spreadsheet_would_run_is_guarded() {
        for (cell, written) in [
            ("", ""),
            ("acme", "acme"),
            ("+37120000001", "+37120000001"),
            ("-5.00", "-5.00"),
            ("=1+1", "'=1+1"),
            ("+1+1", "'+1+1"),
            ("-a", "'-a"),
            ("@x", "'@x"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("+", "'+"),
        ] {
            let mut csv = String::new();
            push_row(&mut csv, &["1", cell]);
            assert_eq!(csv, format!("1,{written}\r\n"), "{cell}");
        }
    }
}
