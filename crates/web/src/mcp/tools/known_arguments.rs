//! Unknown arguments.
//!
//! They are refused: a caller that adds `dryRun` to a message relies on it, and ignoring it would send.

use domain::quoted::Quoted;
use serde_json::{Map, Value};

use super::Arguments;
use crate::mcp::envelope::Envelope;

/// Other names that callers use for an argument, in lower case and without `_` and `-`.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("body", "message"),
    ("callback", "callBackUrl"),
    ("content", "message"),
    ("destination", "to"),
    ("dryrun", "preview"),
    ("estimate", "preview"),
    ("number", "to"),
    ("number", "msisdn"),
    ("phone", "to"),
    ("phone", "msisdn"),
    ("recipient", "to"),
    ("recipients", "to"),
    ("sandbox", "testMode"),
    ("sendat", "scheduled"),
    ("sender", "from"),
    ("simulate", "preview"),
    ("test", "testMode"),
    ("text", "message"),
    ("timeout", "waitSeconds"),
    ("wait", "waitSeconds"),
    ("webhook", "dlrUrl"),
    ("webhook", "callBackUrl"),
];

/// Closes a schema: objects have only the properties that it lists.
pub(super) fn close(schema: &mut Value) {
    if schema.get("properties").is_some_and(Value::is_object) {
        schema["additionalProperties"] = Value::Bool(false);
    }
    let Value::Object(schema) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(close);
    }
    if let Some(items) = schema.get_mut("items") {
        close(items);
    }
}

/// Checks that the schema of a tool has every argument.
pub(in crate::mcp) fn check(
    schema: &Map<String, Value>,
    arguments: &Arguments,
) -> Result<(), Envelope> {
    match find_unknown(schema, arguments) {
        None => Ok(()),
        Some((unknown, known)) => Err(Envelope::invalid(refusal(unknown, &known))),
    }
}

/// The first unknown name, and those that are known in its place.
fn find_unknown<'a>(
    schema: &'a Map<String, Value>,
    object: &'a Map<String, Value>,
) -> Option<(&'a str, Vec<&'a str>)> {
    let properties = schema.get("properties")?.as_object()?;
    object
        .iter()
        .find_map(|(name, value)| match properties.get(name) {
            None => Some((
                name.as_str(),
                properties.keys().map(String::as_str).collect(),
            )),
            Some(inner) => find_in_value(inner, value),
        })
}

fn find_in_value<'a>(schema: &'a Value, value: &'a Value) -> Option<(&'a str, Vec<&'a str>)> {
    match value {
        Value::Object(object) => find_unknown(schema.as_object()?, object),
        Value::Array(list) => {
            let items = schema.get("items")?;
            list.iter().find_map(|item| find_in_value(items, item))
        }
        _ => None,
    }
}

fn refusal(unknown: &str, known: &[&str]) -> String {
    let shown = Quoted(unknown);
    match nearest(unknown, known) {
        None => format!("There is no argument {shown}; this tool takes none."),
        Some(nearest) => format!(
            "There is no argument {shown}; did you mean '{nearest}'? The arguments are {}.",
            known.join(", ")
        ),
    }
}

/// The known name that the caller most likely meant.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = plain(unknown);
    let meant = OTHER_NAMES.iter().filter(|(name, _)| *name == wanted);
    let mut meant = meant.filter_map(|(_, meant)| known.iter().find(|name| *name == meant));
    let by_spelling = || {
        let known = known.iter();
        known.min_by_key(|name| distance(&wanted, &plain(name)))
    };
    meant.next().or_else(by_spelling).copied()
}

/// At most so many characters of a name are compared.
const MAX_COMPARED: usize = 64;

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED)
        .collect()
}

/// The Levenshtein distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, same) in other.iter().map(|c| *c == letter).enumerate() {
            let replaced = diagonal + usize::from(!same);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::tools::{ALL, object};

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let send = [
            "to",
            "from",
            "message",
            "dlrUrl",
            "scheduled",
            "preview",
            "testMode",
        ];
        for (unknown, known, expected) in [
            ("dryRun", &send[..], Some("preview")),
            ("dry_run", &send[..], Some("preview")),
            ("Preview", &send[..], Some("preview")),
            ("messsage", &send[..], Some("message")),
            ("text", &send[..], Some("message")),
            ("sender", &send[..], Some("from")),
            ("schedule", &send[..], Some("scheduled")),
            ("dlr_url", &send[..], Some("dlrUrl")),
            ("number", &["msisdn", "callBackUrl"][..], Some("msisdn")),
            ("country", &["Number", "CountryIso"][..], Some("CountryIso")),
            ("page", &["country", "Page"][..], Some("Page")),
            ("x", &[][..], None),
        ] {
            assert_eq!(nearest(unknown, known), expected, "{unknown}");
        }
    }

    #[test]
    fn a_distance_counts_edits() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("abc", "acb", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn every_tool_refuses_unknown_arguments_and_takes_its_examples() {
        for tool in ALL {
            let mut schema = (tool.input)();
            close(&mut schema);
            assert_eq!(
                schema["additionalProperties"],
                json!(false),
                "{}",
                tool.name
            );
            let schema = object(schema);
            let examples = schema.get("examples").and_then(Value::as_array);
            let takes_none = schema["properties"] == json!({});
            assert!(examples.is_some() != takes_none, "{}", tool.name);
            for example in examples.into_iter().flatten() {
                let example = example.as_object().expect("an object");
                assert_eq!(check(&schema, example), Ok(()), "{}", tool.name);
                let mut more = example.clone();
                more.insert("dryRun".to_owned(), Value::Null);
                let refused = check(&schema, &more).expect_err(tool.name).to_json();
                let message = refused["error"]["message"].as_str().expect("a text");
                assert!(message.contains("dryRun"), "{}: {message}", tool.name);
            }
        }
    }

    #[test]
    fn unknown_names_are_found_at_any_depth() {
        let mut schema = json!({
            "properties": {
                "numbers": { "items": { "properties": { "Number": {}, "CountryIso": {} } } },
                "to": { "anyOf": [{ "type": "string" }] },
            },
        });
        close(&mut schema);
        let items = &schema["properties"]["numbers"]["items"];
        assert_eq!(items["additionalProperties"], json!(false));
        let schema = object(schema);
        for (arguments, unknown) in [
            (json!({}), None),
            (json!({ "to": ["1", { "x": 1 }] }), None),
            (json!({ "numbers": [{ "Number": "1" }] }), None),
            (
                json!({ "numbers": [{ "Number": "1" }, { "country": "LV" }] }),
                Some("country"),
            ),
            (json!({ "numbers": [], "x": null }), Some("x")),
        ] {
            let arguments = object(arguments);
            let found = find_unknown(&schema, &arguments).map(|(name, _)| name);
            assert_eq!(found, unknown, "{arguments:?}");
        }
    }
}
