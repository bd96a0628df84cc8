//! A strict reader of CSV as RFC 4180 writes it.
//!
//! Lines end in LF or CRLF; a field in quotes may hold commas, line breaks and doubled quotes. Anything that a lenient
//! reader would have to guess at is a fault. A field is borrowed from the text unless it holds a doubled quote.

use std::borrow::Cow;

use super::problem::Fault;

/// The fields of one record.
pub(super) type Fields<'a> = [Cow<'a, str>];

/// Reads a text record by record.
pub(super) struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of the text. Spreadsheets put a byte order mark there; it is no part of the first field.
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            line: 1,
        }
    }

    /// Reads the next record into `fields` and returns the line that it starts on; `None` at the end of the text.
    ///
    /// After a fault the reader is at the end: where a quote is wrong, nobody can say where the next record starts.
    pub(super) fn read(
        &mut self,
        fields: &mut Vec<Cow<'a, str>>,
    ) -> Option<(usize, Result<(), Fault>)> {
        if self.rest.is_empty() {
            return None;
        }
        fields.clear();
        let line = self.line;
        let outcome = self.read_record(fields);
        if outcome.is_err() {
            self.rest = "";
        }
        Some((line, outcome))
    }

    fn read_record(&mut self, fields: &mut Vec<Cow<'a, str>>) -> Result<(), Fault> {
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(quoted) => self.read_quoted(quoted)?,
                None => self.read_plain()?,
            };
            fields.push(field);
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => return self.end_line(),
            }
        }
    }

    fn read_plain(&mut self) -> Result<Cow<'a, str>, Fault> {
        let is_end = |&byte: &u8| matches!(byte, b',' | b'\n' | b'"');
        let end = self.rest.as_bytes().iter().position(is_end);
        let end = end.unwrap_or(self.rest.len());
        let (field, rest) = self.rest.split_at(end);
        if rest.starts_with('"') {
            return Err(Fault::StrayQuote);
        }
        let field = match field.strip_suffix('\r') {
            Some(field) if !rest.starts_with(',') => field,
            _ => field,
        };
        self.rest = rest;
        Ok(Cow::Borrowed(field))
    }

    /// Reads what follows an opening quote.
    fn read_quoted(&mut self, quoted: &'a str) -> Result<Cow<'a, str>, Fault> {
        let mut end = 0;
        let mut has_doubled = false;
        loop {
            end += quoted[end..].find('"').ok_or(Fault::OpenQuote)?;
            if !quoted[end + 1..].starts_with('"') {
                break;
            }
            has_doubled = true;
            end += 2;
        }
        let field = &quoted[..end];
        self.rest = &quoted[end + 1..];
        self.line += field.matches('\n').count();
        Ok(if has_doubled {
            Cow::Owned(field.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(field)
        })
    }

    fn end_line(&mut self) -> Result<(), Fault> {
        let rest = self.rest.strip_prefix('\r').unwrap_or(self.rest);
        self.rest = match rest.strip_prefix('\n') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return Err(Fault::StrayQuote),
        };
        self.line += 1;
        Ok(())
    }
}
