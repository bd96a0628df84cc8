//! What a person does with mouse and keys.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::page::{Page, is_between_pages, text_of};

const PERSON: &str = include_str!("person.js");
const POLL: Duration = Duration::from_millis(15);

impl Page {
    /// Clicks a button or a link, found by what it says or by CSS, and waits for the page that it leads to.
    pub async fn click(&self, wanted: &str) {
        let found = self.act("press", wanted, &Value::Null).await;
        self.click_at(&found).await;
    }

    /// Types text into a field in place of what it holds. The field is found by its label or by CSS. Dates and the like
    /// are given as HTML writes them: `2026-02-28`.
    pub async fn fill(&self, wanted: &str, text: &str) {
        let found = self.act("fill", wanted, &text.into()).await;
        if found["type"] != true {
            return;
        }
        if text.is_empty() {
            self.press("Delete").await;
        } else {
            self.order("Input.insertText", json!({ "text": text }))
                .await;
        }
    }

    /// What a field holds.
    pub async fn value(&self, wanted: &str) -> String {
        text_of(&self.act("value", wanted, &Value::Null).await["value"])
    }

    /// Ticks a box or takes a choice of several, found by its label or by CSS. One that is ticked stays so.
    pub async fn tick(&self, wanted: &str) {
        let found = self.act("tick", wanted, &true.into()).await;
        self.click_at(&found).await;
    }

    /// Takes the tick out of a box.
    pub async fn untick(&self, wanted: &str) {
        let found = self.act("tick", wanted, &false.into()).await;
        self.click_at(&found).await;
    }

    /// Takes an option of a list: by its words, by how they start, or by its value.
    pub async fn select(&self, wanted: &str, option: &str) {
        self.act("select", wanted, &option.into()).await;
        self.settle().await;
    }

    /// Gives a file to a field that takes files.
    pub async fn attach(&self, wanted: &str, file: &Path) {
        self.act("attach", wanted, &Value::Null).await;
        let expression = format!("({PERSON})('attach', {}).element", Value::from(wanted));
        let field = self
            .order("Runtime.evaluate", json!({ "expression": expression }))
            .await;
        let order = json!({ "objectId": field["result"]["objectId"], "files": [file] });
        self.order("DOM.setFileInputFiles", order).await;
    }

    /// Presses a key where the focus is: a character, or `Enter`, `Tab`, `Escape`, `Space`, `Backspace`, `Delete`,
    /// `ArrowDown`, `Home` and their like, with `Shift+`, `Control+` or `Alt+` before it.
    pub async fn press(&self, key: &str) {
        let stroke = Stroke::parse(key);
        self.order("Input.dispatchKeyEvent", stroke.event("keyDown"))
            .await;
        self.order("Input.dispatchKeyEvent", stroke.event("keyUp"))
            .await;
        self.settle().await;
    }

    /// Clicks the button that sends the form in which the focus is, or else the first form of the page's main part.
    pub async fn submit(&self) {
        let found = self.act("submit", "", &Value::Null).await;
        self.click_at(&found).await;
    }

    /// Looks for a thing until it can be used.
    async fn act(&self, act: &str, wanted: &str, extra: &Value) -> Value {
        let wanted_value = Value::from(wanted);
        let expression = format!("({PERSON})('{act}', {wanted_value}, {extra})");
        let until = self.deadline();
        let mut why = String::new();
        loop {
            match self.try_evaluate(&expression, None).await {
                Ok(found) if found["done"] == true => return found,
                Ok(found) => why = text_of(&found["why"]),
                Err(error) if is_between_pages(&error) => {}
                Err(error) => self.fail(&format!("{act} {wanted:?}: {error}")).await,
            }
            if Instant::now() >= until {
                self.fail(&format!("cannot {act} {wanted:?}: {why}")).await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Where there is no point, there is nothing to do.
    async fn click_at(&self, found: &Value) {
        if found["x"].is_null() {
            return;
        }
        for (kind, button, buttons) in [
            ("mouseMoved", "none", 0),
            ("mousePressed", "left", 1),
            ("mouseReleased", "left", 0),
        ] {
            let event = json!({
                "type": kind,
                "x": found["x"],
                "y": found["y"],
                "button": button,
                "buttons": buttons,
                "clickCount": 1,
            });
            self.order("Input.dispatchMouseEvent", event).await;
        }
        self.settle().await;
    }
}

/// A key and what is held down with it.
#[derive(Debug, PartialEq, Eq)]
struct Stroke {
    key: String,
    code: u32,
    text: String,
    modifiers: u8,
}

impl Stroke {
    fn parse(keys: &str) -> Self {
        let mut modifiers = 0;
        let mut rest = keys;
        for (name, bit) in [("Alt+", 1), ("Control+", 2), ("Shift+", 8)] {
            if let Some(behind) = rest.strip_prefix(name) {
                modifiers |= bit;
                rest = behind;
            }
        }
        let named = |key: &str, code, text: &str| Self {
            key: key.to_owned(),
            code,
            text: text.to_owned(),
            modifiers,
        };
        match rest {
            "Enter" => named(rest, 13, "\r"),
            "Tab" => named(rest, 9, ""),
            "Escape" => named(rest, 27, ""),
            "Space" => named(" ", 32, " "),
            "Backspace" => named(rest, 8, ""),
            "Delete" => named(rest, 46, ""),
            "PageUp" => named(rest, 33, ""),
            "PageDown" => named(rest, 34, ""),
            "End" => named(rest, 35, ""),
            "Home" => named(rest, 36, ""),
            "ArrowLeft" => named(rest, 37, ""),
            "ArrowUp" => named(rest, 38, ""),
            "ArrowRight" => named(rest, 39, ""),
            "ArrowDown" => named(rest, 40, ""),
            key => {
                let mut characters = key.chars();
                let (Some(character), None) = (characters.next(), characters.next()) else {
                    panic!("no key is called {key:?}");
                };
                let types = modifiers & !8 == 0;
                let code = u32::from(character.to_ascii_uppercase());
                named(key, code, if types { key } else { "" })
            }
        }
    }

    fn event(&self, kind: &str) -> Value {
        let mut event = json!({
            "type": kind,
            "key": self.key,
            "windowsVirtualKeyCode": self.code,
            "modifiers": self.modifiers,
        });
        if kind == "keyDown" && !self.text.is_empty() {
            event["text"] = self.text.as_str().into();
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::Stroke;

    #[test]
    fn keys_are_read() {
        for (keys, key, code, text, modifiers) in [
            ("Enter", "Enter", 13, "\r", 0),
            ("a", "a", 65, "a", 0),
            ("/", "/", 47, "/", 0),
            ("Shift+Tab", "Tab", 9, "", 8),
            ("Control+a", "a", 65, "", 2),
            ("Alt+Shift+ArrowUp", "ArrowUp", 38, "", 9),
        ] {
            let expected = Stroke {
                key: key.to_owned(),
                code,
                text: text.to_owned(),
                modifiers,
            };
            assert_eq!(Stroke::parse(keys), expected, "{keys}");
        }
    }
}
