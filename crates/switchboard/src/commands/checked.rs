//! The counts and sums of both sides of a copy, as text and JSON.

use std::fmt::Write as _;

use serde_json::json;
use store::transfer::Checked;

/// One line for each table with rows, and one for all empty tables; if something differs, only the differences.
pub(super) fn text(checked: &[Checked]) -> String {
    if checked.iter().all(Checked::is_equal) {
        equal(checked)
    } else {
        differing(checked)
    }
}

fn equal(checked: &[Checked]) -> String {
    let (mut lines, mut empty) = (String::new(), 0);
    let mut add = |table: &str, rows: &str, sums: &str| {
        let line = format!("{table:<18} {rows:>12}  {sums}");
        lines.push_str(line.trim_end());
        lines.push('\n');
    };
    add("TABLE", "ROWS", "SUMS");
    for of_table in checked.chunk_by(|one, next| one.table == next.table) {
        let rows = of_table.iter().find(|one| one.what == "rows");
        let rows = rows.map_or(0, |rows| rows.source);
        if rows == 0 {
            empty += 1;
            continue;
        }
        // Checksums mean nothing to people.
        let sums = of_table.iter().filter(|one| one.source != 0);
        let sums = sums.filter_map(|one| {
            let column = one.what.strip_prefix("sum of ")?;
            Some(format!("{column} {}", one.source))
        });
        let sums: Vec<String> = sums.collect();
        add(of_table[0].table, &rows.to_string(), &sums.join(", "));
    }
    let all = checked.len();
    format!(
        "{lines}Both sides are the same in all {all} counts, sums and checksums; {empty} tables are empty. --json shows each.\n"
    )
}

fn differing(checked: &[Checked]) -> String {
    let mut lines = String::new();
    let mut add = |table: &str, what: &str, source: &str, copy: &str| {
        writeln!(lines, "{table:<18} {what:<36} {source:>20} {copy:>20}")
            .expect("a string takes everything");
    };
    add("TABLE", "WHAT DIFFERS", "SOURCE", "COPY");
    let differing = checked.iter().filter(|one| !one.is_equal());
    for one in differing {
        let (source, copy) = (one.source.to_string(), one.target.to_string());
        add(one.table, &one.what, &source, &copy);
    }
    let equal = checked.iter().filter(|one| one.is_equal()).count();
    format!("{lines}{equal} other counts, sums and checksums are the same on both sides.\n")
}

pub(super) fn to_json(checked: &[Checked]) -> serde_json::Value {
    let entries = checked.iter().map(|checked| {
        json!({
            "table": checked.table,
            "what": checked.what,
            "source": checked.source,
            "copy": checked.target,
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(copy_of_amounts: i64) -> Vec<Checked> {
        let one = |table, what: &str, source, target| Checked {
            table,
            what: what.to_owned(),
            source,
            target,
        };
        vec![
            one("account", "rows", 2, 2),
            one("account", "checksum of id", 3, 3),
            one("account", "sum of credit_limit_micros", 0, 0),
            one("person", "rows", 0, 0),
            one("person", "checksum of id", 0, 0),
            one("session", "rows", 0, 0),
            one("ledger", "rows", 12, 12),
            one("ledger", "sum of amount_micros", 5_000_000, copy_of_amounts),
            one("ledger", "sum of messages", 7, 7),
            one("ledger", "rows with kind 1", 12, 12),
        ]
    }

    #[test]
    fn tables_with_rows_have_a_line_and_the_others_are_counted() {
        let expected = [
            "TABLE                      ROWS  SUMS",
            "account                       2",
            "ledger                       12  amount_micros 5000000, messages 7",
            "Both sides are the same in all 10 counts, sums and checksums; 2 tables are empty. --json shows each.",
            "",
        ];
        assert_eq!(text(&checked(5_000_000)), expected.join("\n"));
    }

    #[test]
    fn only_differences_are_shown() {
        let shown = text(&checked(4_000_000));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        for word in ["ledger", "sum of amount_micros", "5000000", "4000000"] {
            assert!(lines[1].contains(word), "{shown}");
        }
        assert!(lines[2].starts_with("9 other"), "{shown}");
    }
}
