//! Descriptions of providers that come with the program, so that a carrier needs little more than its secrets.

use anyhow::anyhow;
use toml::{Table, Value};

use super::problems::Mistake;

pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// TOML, with comments.
    pub(crate) text: &'static str,
}

/// All presets, by name.
pub(crate) const PRESETS: [Preset; 8] = [
    Preset {
        name: "android-sms-gateway",
        text: include_str!("../../presets/android-sms-gateway.toml"),
    },
    Preset {
        name: "infobip",
        text: include_str!("../../presets/infobip.toml"),
    },
    Preset {
        name: "infobip-lookup",
        text: include_str!("../../presets/infobip-lookup.toml"),
    },
    Preset {
        name: "infobip-viber",
        text: include_str!("../../presets/infobip-viber.toml"),
    },
    Preset {
        name: "neutrino",
        text: include_str!("../../presets/neutrino.toml"),
    },
    Preset {
        name: "telnyx",
        text: include_str!("../../presets/telnyx.toml"),
    },
    Preset {
        name: "twilio",
        text: include_str!("../../presets/twilio.toml"),
    },
    Preset {
        name: "vonage",
        text: include_str!("../../presets/vonage.toml"),
    },
];

impl Preset {
    pub(crate) fn find(name: &str) -> anyhow::Result<&'static Self> {
        let found = PRESETS.iter().find(|preset| preset.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            anyhow!(
                "there is no preset '{name}'; there are {}",
                names.join(", ")
            )
        })
    }

    /// What it is, in one line.
    pub(crate) fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_start_matches("# ")
    }

    /// The carrier that its first comments give as an example.
    pub(crate) fn example(&self) -> Table {
        let comments = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let lines = comments.skip_while(|line| !line.contains("[[carrier]]"));
        let lines: Vec<&str> = lines.map_while(|line| line.strip_prefix("   ")).collect();
        let mut example: Table = lines
            .join("\n")
            .parse()
            .expect("a test parses every example");
        match example.remove("carrier") {
            Some(Value::Array(mut carriers)) if carriers.len() == 1 => match carriers.remove(0) {
                Value::Table(carrier) => carrier,
                _ => Table::new(),
            },
            _ => Table::new(),
        }
    }

    fn table(&self) -> Table {
        self.text.parse().expect("a test parses every preset")
    }
}

/// Completes carriers that name a preset. What the configuration sets wins.
pub(super) fn apply(root: &mut Table) -> Vec<Mistake> {
    let Some(Value::Array(carriers)) = root.get_mut("carrier") else {
        return Vec::new();
    };
    let mut mistakes = Vec::new();
    for (index, carrier) in carriers.iter_mut().enumerate() {
        let Some(carrier) = carrier.as_table_mut() else {
            continue;
        };
        // A value of another type is found when the configuration is read.
        let Some(Value::String(name)) = carrier.get("preset") else {
            continue;
        };
        match Preset::find(name) {
            Ok(preset) => complete(carrier, preset.table()),
            Err(error) => {
                mistakes.push(Mistake::in_item("carrier", index, error.context("preset")));
            }
        }
    }
    mistakes
}

/// Adds what is missing.
fn complete(table: &mut Table, with: Table) {
    // A request has one body, so another one replaces the preset's.
    let is_body = |key: &str| matches!(key, "json" | "form");
    let has_body = table.keys().any(|key| is_body(key));
    for (key, value) in with {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(inner)) => complete(own, inner),
            (Some(_), _) => {}
            (None, _) if has_body && is_body(&key) => {}
            (None, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> (Table, Vec<Mistake>) {
        let mut table: Table = text.parse().expect("TOML");
        let mistakes = apply(&mut table);
        (table, mistakes)
    }

    #[test]
    fn every_preset_says_where_it_comes_from() {
        for preset in &PRESETS {
            let comments = preset.text.lines().map_while(|line| line.strip_prefix('#'));
            let words: Vec<&str> = comments.flat_map(str::split_whitespace).collect();
            let text = words.join(" ");
            let is_date = |word: &&str| {
                let word = word.trim_end_matches(['.', ',']);
                word.len() == 10 && word.parse::<jiff::civil::Date>().is_ok()
            };
            assert!(words.iter().any(is_date), "{}: no date", preset.name);
            assert!(!preset.table().is_empty(), "{}", preset.name);
            assert!(text.contains("Compare the fields"), "{}", preset.name);
            assert!(text.contains("https://"), "{}", preset.name);
            assert!(text.contains("not tested against"), "{}", preset.name);
            assert!(!preset.title().is_empty(), "{}", preset.name);
            let example = preset.example();
            assert_eq!(example["preset"].as_str(), Some(preset.name));
            assert!(example["secret"].is_table(), "{}", preset.name);
        }
        assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
    }

    #[test]
    fn the_configuration_wins_over_the_preset() {
        let (table, mistakes) = completed(
            "[[carrier]]\npreset = 'twilio'\nbase_url = 'http://x'\nwindow = 7\n\
             [carrier.request.form]\nFrom = 'Acme'\n[carrier.response]\nlater = ['500']\n",
        );
        assert!(mistakes.is_empty());
        let carrier = &table["carrier"][0];
        assert_eq!(carrier["base_url"].as_str(), Some("http://x"));
        assert_eq!(carrier["window"].as_integer(), Some(7));
        let form = &carrier["request"]["form"];
        assert_eq!(form["From"].as_str(), Some("Acme"));
        assert_eq!(form["Body"].as_str(), Some("{{ text }}"));
        assert_eq!(
            carrier["response"]["later"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(carrier["response"]["id"].as_str(), Some("/sid"));
    }

    #[test]
    fn another_kind_of_body_replaces_the_presets() {
        let (table, _) =
            completed("[[carrier]]\npreset = 'twilio'\n[carrier.request.json]\nTo = '{{ to }}'\n");
        let request = table["carrier"][0]["request"].as_table().expect("a table");
        assert!(request.contains_key("json") && !request.contains_key("form"));
    }

    #[test]
    fn an_unknown_preset_is_a_mistake() {
        let (_, mistakes) = completed("[[carrier]]\npreset = 'x'\n[[carrier]]\nname = 'y'\n");
        assert_eq!(mistakes.len(), 1);
    }
}
