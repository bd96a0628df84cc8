//! The secrets of a carrier. Its other settings are shown to operators, secrets never.

use anyhow::{Context as _, bail};
use toml::{Table, Value};

/// The settings of a carrier that are secrets. Everything in its table `secret` is one, too.
const NAMES: [&str; 3] = ["password", "token", "proxy"];
const TABLE: &str = "secret";
/// A value of several lines that begins with one of these ends with the other.
const LONG: [(&str, &str); 4] = [("\"\"\"", "\"\"\""), ("'''", "'''"), ("{", "}"), ("[", "]")];

/// The names of the secrets that are set: `password`, `secret.key`.
pub(crate) fn names(carrier: &Table) -> Vec<String> {
    take(&mut carrier.clone())
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

/// Removes the secrets, and returns them with their names.
pub(crate) fn take(carrier: &mut Table) -> Vec<(String, Value)> {
    let mut taken: Vec<(String, Value)> = NAMES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), carrier.remove(name)?)))
        .collect();
    match carrier.remove(TABLE) {
        Some(Value::Table(table)) => {
            let within = |(name, value): (String, Value)| (format!("{TABLE}.{name}"), value);
            taken.extend(table.into_iter().map(within));
        }
        Some(other) => taken.push((TABLE.to_owned(), other)),
        None => {}
    }
    taken
}

/// Sets a secret.
pub(crate) fn put(carrier: &mut Table, name: &str, value: String) -> anyhow::Result<()> {
    let value = Value::String(value);
    if NAMES.contains(&name) {
        carrier.insert(name.to_owned(), value);
        return Ok(());
    }
    let within = name
        .strip_prefix(TABLE)
        .and_then(|name| name.strip_prefix('.'));
    let is_key = |name: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        !name.is_empty() && name.bytes().all(is_plain)
    };
    let Some(key) = within.filter(is_key) else {
        bail!(
            "'{name}' is not a secret name; give {}, or {TABLE}.NAME",
            NAMES.join(", ")
        );
    };
    let table = carrier
        .entry(TABLE)
        .or_insert_with(|| Value::Table(Table::new()))
        .as_table_mut()
        .with_context(|| format!("{TABLE} must be a table"))?;
    table.insert(key.to_owned(), value);
    Ok(())
}

/// A description without the values of its secrets, even if it is not valid.
pub(crate) fn hide(description: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut table: Vec<String> = Vec::new();
    let mut until: Option<&str> = None;
    for line in description.lines() {
        if let Some(end) = until {
            if line.contains(end) {
                until = None;
            }
            continue;
        }
        let text = line.trim_start_matches(|c: char| c == '#' || c.is_whitespace());
        if text.starts_with('[') {
            table = path(text.trim_matches(|c: char| "[] \t".contains(c)));
            shown.push(line.to_owned());
            continue;
        }
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            // A forgotten equals sign must not show a secret.
            None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
        };
        let is_hidden = !key.is_empty() && is_secret(&table, key);
        if !is_hidden {
            shown.push(line.to_owned());
            continue;
        }
        let long = LONG.into_iter().find(|(start, _)| value.starts_with(start));
        let long = long.filter(|(start, end)| !value[start.len()..].contains(end));
        until = long.map(|(_, end)| end);
        let nothing = if key == TABLE { "{}" } else { "\"\"" };
        shown.push(format!("{key} = {nothing}"));
    }
    shown.join("\n")
}

/// The parts of a key, without the leading `carrier`.
fn path(key: &str) -> Vec<String> {
    let parts = key.split('.');
    let parts = parts.map(|part| part.trim_matches(|c: char| "\"' \t".contains(c)).to_owned());
    parts.skip_while(|part| part == "carrier").collect()
}

fn is_secret(table: &[String], key: &str) -> bool {
    let key = path(key);
    let mut whole = table.iter().chain(&key);
    let Some(first) = whole.next() else {
        return false;
    };
    first == TABLE || (NAMES.contains(&first.as_str()) && table.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_put_back() {
        let text = "kind = 'http'\nproxy = 'a'\n[request.basic]\npassword = '{{ secret.key }}'\n\
            [secret]\nkey = 'b'\n";
        let mut carrier: Table = text.parse().expect("TOML");
        let whole = carrier.clone();
        assert_eq!(names(&carrier), ["proxy", "secret.key"]);
        let taken = take(&mut carrier);
        assert_eq!(carrier.len(), 2, "kind and request: {carrier:?}");
        for (name, value) in taken {
            put(
                &mut carrier,
                &name,
                value.as_str().expect("a text").to_owned(),
            )
            .expect("a name");
        }
        assert_eq!(carrier, whole);
        for wrong in ["window", "secret.", "secret.a.b", "secret", ""] {
            put(&mut carrier, wrong, "x".to_owned()).expect_err(wrong);
        }
    }

    #[test]
    fn a_description_is_shown_without_secrets() {
        for (text, expected) in [
            ("password = 'x'\nwindow = 1", "password = \"\"\nwindow = 1"),
            ("\"token\"='x'", "\"token\" = \"\""),
            ("password 'x'", "password = \"\""),
            ("# proxy = 'x'", "proxy = \"\""),
            ("secret = { a = 'x' }", "secret = {}"),
            ("secret = {\n a = 'x'\n}\nb = 1", "secret = {}\nb = 1"),
            ("secret.a = 'x'", "secret.a = \"\""),
            (
                "[carrier.secret]\na = '''\nx\n'''\n[report]\nid = '/x'",
                "[carrier.secret]\na = \"\"\n[report]\nid = '/x'",
            ),
            ("[secret]\na 'x'", "[secret]\na = \"\""),
            (
                "[request.basic]\npassword = '{{ secret.a }}'",
                "[request.basic]\npassword = '{{ secret.a }}'",
            ),
        ] {
            assert_eq!(hide(text), expected, "{text}");
        }
    }
}
