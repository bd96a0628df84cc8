//! Mouse and keyboard.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::page::{Page, is_between_pages, text_of};

const ELEMENT_ACTION: &str = include_str!("element_action.js");
const POLL: Duration = Duration::from_millis(15);

impl Page {
    /// Clicks a button or a link, found by its text or by CSS, and waits for the next page.
    pub async fn click(&self, wanted: &str) {
        let found = self.perform("press", wanted, &Value::Null).await;
        self.click_at(&found).await;
    }

    /// Replaces the content of a field by typing. The field is found by its label or by CSS. Dates and times are given
    /// in the format of HTML: `2026-02-28`.
    pub async fn fill(&self, wanted: &str, text: &str) {
        let found = self.perform("fill", wanted, &text.into()).await;
        if found["type"] != true {
            return;
        }
        if text.is_empty() {
            self.press("Delete").await;
        } else {
            self.command("Input.insertText", json!({ "text": text }))
                .await;
        }
    }

    /// The content of a field.
    pub async fn value(&self, wanted: &str) -> String {
        text_of(&self.perform("value", wanted, &Value::Null).await["value"])
    }

    /// Ticks a checkbox or a radio button, found by its label or by CSS, unless it is already ticked.
    pub async fn tick(&self, wanted: &str) {
        let found = self.perform("tick", wanted, &true.into()).await;
        self.click_at(&found).await;
    }

    /// Unticks a checkbox, unless it is already unticked.
    pub async fn untick(&self, wanted: &str) {
        let found = self.perform("tick", wanted, &false.into()).await;
        self.click_at(&found).await;
    }

    /// Selects an option of a list by its text, by the start of its text, or by its value.
    pub async fn select(&self, wanted: &str, option: &str) {
        self.perform("select", wanted, &option.into()).await;
        self.settle().await;
    }

    /// Sets the file of a file field.
    pub async fn attach(&self, wanted: &str, file: &Path) {
        self.perform("attach", wanted, &Value::Null).await;
        let expression = format!(
            "({ELEMENT_ACTION})('attach', {}).element",
            Value::from(wanted)
        );
        let field = self
            .command("Runtime.evaluate", json!({ "expression": expression }))
            .await;
        let parameters = json!({ "objectId": field["result"]["objectId"], "files": [file] });
        self.command("DOM.setFileInputFiles", parameters).await;
    }

    /// Presses a key: a character, or a name such as `Enter`, `Tab`, `Escape`, `Space`, `Backspace`, `Delete`,
    /// `ArrowDown` or `Home`, with `Shift+`, `Control+` or `Alt+` before it.
    pub async fn press(&self, key: &str) {
        let key = KeyPress::parse(key);
        self.command("Input.dispatchKeyEvent", key.event("keyDown"))
            .await;
        self.command("Input.dispatchKeyEvent", key.event("keyUp"))
            .await;
        self.settle().await;
    }

    /// Clicks the submit button of the form that has the focus, or else of the first form in the page's main part.
    pub async fn submit(&self) {
        let found = self.perform("submit", "", &Value::Null).await;
        self.click_at(&found).await;
    }

    /// Repeats an action until its element is found and ready.
    async fn perform(&self, action: &str, wanted: &str, extra: &Value) -> Value {
        let wanted_value = Value::from(wanted);
        let expression = format!("({ELEMENT_ACTION})('{action}', {wanted_value}, {extra})");
        let until = self.deadline();
        let mut reason = String::new();
        loop {
            match self.try_evaluate(&expression, None).await {
                Ok(found) if found["done"] == true => return found,
                Ok(found) => reason = text_of(&found["reason"]),
                Err(error) if is_between_pages(&error) => {}
                Err(error) => self.fail(&format!("{action} {wanted:?}: {error}")).await,
            }
            if Instant::now() >= until {
                self.fail(&format!("cannot {action} {wanted:?}: {reason}"))
                    .await;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Clicks at the point that was found. Without a point, there is nothing to do.
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
            self.command("Input.dispatchMouseEvent", event).await;
        }
        self.settle().await;
    }
}

/// A key and its modifiers.
#[derive(Debug, PartialEq, Eq)]
struct KeyPress {
    key: String,
    code: u32,
    text: String,
    modifiers: u8,
}

impl KeyPress {
    fn parse(keys: &str) -> Self {
        let mut modifiers = 0;
        let mut rest = keys;
        for (name, bit) in [("Alt+", 1), ("Control+", 2), ("Shift+", 8)] {
            if let Some(key) = rest.strip_prefix(name) {
                modifiers |= bit;
                rest = key;
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
                    panic!("unknown key {key:?}");
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
    use super::KeyPress;

    #[test]
    fn keys_are_parsed() {
        for (keys, key, code, text, modifiers) in [
            ("Enter", "Enter", 13, "\r", 0),
            ("a", "a", 65, "a", 0),
            ("/", "/", 47, "/", 0),
            ("Shift+Tab", "Tab", 9, "", 8),
            ("Control+a", "a", 65, "", 2),
            ("Alt+Shift+ArrowUp", "ArrowUp", 38, "", 9),
        ] {
            let expected = KeyPress {
                key: key.to_owned(),
                code,
                text: text.to_owned(),
                modifiers,
            };
            assert_eq!(KeyPress::parse(keys), expected, "{keys}");
        }
    }
}
