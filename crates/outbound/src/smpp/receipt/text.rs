//! Parses receipts in text form: `id:1 sub:001 dlvrd:001 submit date:2401011200 done date:2401011201 stat:DELIVRD
//! err:000 text:Hi`.
//!
//! The standard only has an example of it, so every carrier has its own variant: fields are missing or in another
//! order, in another case, with or without spaces around the colon. All have names, colons and values.

/// The fields of a receipt's text, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fields<'t> {
    /// The carrier's ID of the part.
    pub(super) id: Option<&'t str>,
    /// The state.
    pub(super) stat: Option<&'t str>,
    /// The error number.
    pub(super) err: Option<&'t str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    Stat,
    Err,
    /// Not needed, but it ends the value before it.
    Other,
    Text,
}

/// The names of fields, longer ones before their prefixes.
const NAMES: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("status", Field::Stat),
    ("state", Field::Stat),
    ("stat", Field::Stat),
    ("error", Field::Err),
    ("err", Field::Err),
    ("submit date", Field::Other),
    ("submit_date", Field::Other),
    ("submitdate", Field::Other),
    ("done date", Field::Other),
    ("done_date", Field::Other),
    ("donedate", Field::Other),
    ("sub", Field::Other),
    ("dlvrd", Field::Other),
    ("text", Field::Text),
];

/// Parses a receipt's text; other texts give no fields.
///
/// Nothing after `text:` is read: it is the start of the message itself, whose author could otherwise forge a receipt.
/// If a field occurs twice, the first counts, for the same reason.
pub(super) fn parse(text: &str) -> Fields<'_> {
    let mut fields = Fields::default();
    let mut open: Option<(Field, usize)> = None;
    let mut at_start = true;
    for (index, character) in text.char_indices() {
        if at_start && let Some((field, length)) = field_at(&text[index..]) {
            close(&mut fields, open, &text[..index]);
            open = Some((field, index + length));
            if field == Field::Text {
                return fields;
            }
        }
        at_start = is_gap(character);
    }
    close(&mut fields, open, text);
    fields
}

/// Whether a field name may follow.
fn is_gap(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\0' | ',' | ';' | '|' | '&')
}

/// The field whose name and colon are here, and their length.
fn field_at(rest: &str) -> Option<(Field, usize)> {
    NAMES.iter().find_map(|(name, field)| {
        let behind = rest
            .get(..name.len())
            .filter(|start| start.eq_ignore_ascii_case(name))
            .map(|_| &rest[name.len()..])?;
        let value = behind.trim_start_matches(' ').strip_prefix([':', '='])?;
        Some((*field, rest.len() - value.len()))
    })
}

/// Stores the value that starts at its field's colon and ends at `until`: its first word.
fn close<'t>(fields: &mut Fields<'t>, open: Option<(Field, usize)>, until: &'t str) {
    let Some((field, start)) = open else { return };
    let value = until[start..].split(is_gap).find(|word| !word.is_empty());
    let slot = match field {
        Field::Id => &mut fields.id,
        Field::Stat => &mut fields.stat,
        Field::Err => &mut fields.err,
        Field::Other | Field::Text => return,
    };
    if slot.is_none() {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields<'t>(id: &'t str, stat: &'t str, err: &'t str) -> Fields<'t> {
        let given = |value: &'t str| Some(value).filter(|value| !value.is_empty());
        Fields {
            id: given(id),
            stat: given(stat),
            err: given(err),
        }
    }

    #[test]
    fn every_known_way_to_write_a_receipt_is_read() {
        let short = "submit date:2401011200 done date:2401011201";
        let cases = [
            (
                "as in the protocol's appendix",
                format!("id:0123456789 sub:001 dlvrd:001 {short} stat:DELIVRD err:000 text:Hello"),
                fields("0123456789", "DELIVRD", "000"),
            ),
            (
                "seconds in the dates, capital Text",
                "id:1 sub:001 dlvrd:001 submit date:240101120000 done date:20240101120101 stat:EXPIRED err:27 Text:x"
                    .to_owned(),
                fields("1", "EXPIRED", "27"),
            ),
            (
                "spaces behind the colons",
                "id: 1  sub: 001  submit date: 2401011200  stat: UNDELIV  err: 001  text: x".to_owned(),
                fields("1", "UNDELIV", "001"),
            ),
            (
                "spaces before the colons",
                "id :1 stat :UNDELIV err :6".to_owned(),
                fields("1", "UNDELIV", "6"),
            ),
            (
                "capitals",
                format!("ID:1 SUB:001 {} STAT:DELIVRD ERR:000 TEXT:x", short.to_uppercase()),
                fields("1", "DELIVRD", "000"),
            ),
            (
                "another order",
                format!("stat:REJECTD err:0x1B {short} id:7f-3e sub:001"),
                fields("7f-3e", "REJECTD", "0x1B"),
            ),
            ("no text", "id:1 stat:DELIVRD err:000".to_owned(), fields("1", "DELIVRD", "000")),
            ("no err", "id:1 stat:DELIVRD".to_owned(), fields("1", "DELIVRD", "")),
            ("no id", format!("sub:001 dlvrd:001 {short} stat:DELIVRD"), fields("", "DELIVRD", "")),
            ("an empty value", "id:1 stat: err:E02".to_owned(), fields("1", "", "E02")),
            ("NUL at the end", "id:1 stat:DELIVRD err:000\0".to_owned(), fields("1", "DELIVRD", "000")),
            ("other names", "id:1 submitdate:1 donedate:2 status:5 error:6".to_owned(), fields("1", "5", "6")),
            ("commas", "id:1,stat:DELIVRD,err:000".to_owned(), fields("1", "DELIVRD", "000")),
            ("lines", "id:1\r\nstat:DELIVRD\r\nerr:0".to_owned(), fields("1", "DELIVRD", "0")),
            ("equals signs", "id=1 stat=DELIVRD err=0".to_owned(), fields("1", "DELIVRD", "0")),
            (
                "the message's own text is not read",
                "id:1 stat:UNDELIV text:err:001 id:2 stat:DELIVRD".to_owned(),
                fields("1", "UNDELIV", ""),
            ),
            (
                "the first of two counts",
                "id:1 id:2 stat:UNDELIV stat:DELIVRD".to_owned(),
                fields("1", "UNDELIV", ""),
            ),
            ("a name within a word", "grid:1 restat:2".to_owned(), Fields::default()),
            ("not a receipt", "Hello, are you there?".to_owned(), Fields::default()),
            ("nothing", String::new(), Fields::default()),
            ("beyond ASCII", "ïd:1 id:é stat:É".to_owned(), fields("é", "É", "")),
        ];
        for (name, text, expected) in &cases {
            assert_eq!(parse(text), *expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_text_never_panics(text: String) {
            parse(&text);
        }

        #[test]
        fn fields_are_found_in_any_order_and_case(
            mut pairs in Just(vec![("id", "42"), ("sub", "001"), ("stat", "EXPIRED"), ("err", "06"), ("done date", "2401011200")])
                .prop_shuffle(),
            upper: bool,
            gap in " {1,3}",
            behind in " {0,2}",
        ) {
            pairs.push(("text", "id:1 stat:DELIVRD"));
            let mut text = String::new();
            for (name, value) in pairs {
                let name = if upper { name.to_uppercase() } else { name.to_owned() };
                text.extend([&name, ":", &behind, value, &gap]);
            }
            prop_assert_eq!(parse(&text), fields("42", "EXPIRED", "06"));
        }
    }
}
