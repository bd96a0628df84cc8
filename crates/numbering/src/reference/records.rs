//! Reads the records of a CSV file, with the line that each starts on.
//!
//! The crate `csv` accepts misplaced quotes and skips empty lines. Both usually mean that a data file is broken, so
//! they are reported here.

use std::ops::ControlFlow;

use csv::{ReaderBuilder, StringRecord, Terminator};

use super::problem::Fault;

/// Calls `handle` for each record until it breaks. An empty line is a record with one empty field.
///
/// Stops after a misplaced quote, because the start of the next record is unknown then.
pub(super) fn for_each_record(
    text: &str,
    mut handle: impl FnMut(usize, Result<&StringRecord, Fault>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // Spreadsheets write a byte order mark and CRLF.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(text.as_bytes());
    let empty_line = StringRecord::from(vec![""]);
    let mut record = StringRecord::new();
    let mut line = 1;
    let mut start = 0;
    loop {
        let is_record = reader
            .read_record(&mut record)
            .expect("text in memory is readable and UTF-8");
        let end = usize::try_from(reader.position().byte()).expect("the text is in memory");
        let consumed = &text[start..end];
        let raw = consumed.trim_start_matches('\n');
        for _ in raw.len()..consumed.len() {
            handle(line, Ok(&empty_line))?;
            line += 1;
        }
        if !is_record {
            return ControlFlow::Continue(());
        }
        if let Err(fault) = check_quotes(raw) {
            return handle(line, Err(fault));
        }
        handle(line, Ok(&record))?;
        line += raw.matches('\n').count();
        start = end;
    }
}

/// Checks that quotes only enclose whole fields or are doubled within a quoted field.
fn check_quotes(raw: &str) -> Result<(), Fault> {
    if !raw.contains('"') {
        return Ok(());
    }
    // Every second piece is outside quotes. A doubled quote leaves an empty one.
    let pieces: Vec<&str> = raw.trim_end_matches('\n').split('"').collect();
    let last = pieces.len() - 1;
    for (index, outside) in pieces.iter().enumerate().step_by(2) {
        let may_open = index == last || outside.is_empty() || outside.ends_with(',');
        let may_close = index == 0 || outside.is_empty() || outside.starts_with(',');
        if !(may_open && may_close) {
            return Err(Fault::StrayQuote);
        }
    }
    if last.is_multiple_of(2) {
        Ok(())
    } else {
        Err(Fault::OpenQuote)
    }
}
