//! `[billing]`, `[senders]`, `[inbound]`, `[optout]`, `[simulator]` and `[retention]`: currency, confirmation codes,
//! messages from handsets, the simulated network, and how long data is stored.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use domain::inbound::words::{Words, compared};
use domain::{Money, Originator};
use serde::{Deserialize, Serialize};

use super::Config;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Billing {
    pub(crate) currency: String,
    pub(crate) confirm_above: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Senders {
    pub(crate) pin_from: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Simulator {
    pub(crate) delay_ms: u64,
    pub(crate) window: usize,
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the keys of the file")]
pub(crate) struct Retention {
    pub(crate) messages_days: u32,
    pub(crate) texts_days: u32,
    pub(crate) ledger_days: u32,
    pub(crate) ported_days: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Inbound {
    pub(crate) incomplete_seconds: u32,
}

/// Words besides the common ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the keys of the file")]
pub(crate) struct OptOutWords {
    stop_words: Vec<String>,
    start_words: Vec<String>,
    help_words: Vec<String>,
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            incomplete_seconds: 86_400,
        }
    }
}

impl Default for Billing {
    fn default() -> Self {
        Self {
            currency: "EUR".to_owned(),
            confirm_above: "1.00".to_owned(),
        }
    }
}

impl Default for Senders {
    fn default() -> Self {
        Self {
            pin_from: "Switchboard".to_owned(),
        }
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self {
            delay_ms: 300,
            window: 500,
            journal: None,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            messages_days: 90,
            texts_days: 0,
            ledger_days: 0,
            ported_days: 30,
        }
    }
}

impl OptOutWords {
    /// Only the first word of a text counts.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let lists = [
            ("stop_words", &self.stop_words),
            ("start_words", &self.start_words),
            ("help_words", &self.help_words),
        ];
        for (key, words) in lists {
            for word in words {
                let is_word = !word.contains(char::is_whitespace) && !compared(word).is_empty();
                ensure!(
                    is_word,
                    "optout.{key}: '{word}' must be one word with at least one letter or digit"
                );
            }
        }
        Ok(())
    }
}

impl Retention {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.ported_days > 0,
            "retention.ported_days is 0; give at least 1, because numbers are ported again"
        );
        Ok(())
    }
}

impl Billing {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let letters = self.currency.bytes().all(|b| b.is_ascii_uppercase());
        ensure!(
            self.currency.len() == 3 && letters,
            "billing.currency must be an ISO 4217 code such as EUR"
        );
        ensure!(
            self.confirm_above()? >= Money::ZERO,
            "billing.confirm_above is negative; give 0 or more"
        );
        Ok(())
    }

    /// Messages that cost more need the consent of an AI client's user.
    pub(crate) fn confirm_above(&self) -> anyhow::Result<Money> {
        self.confirm_above.parse().context("billing.confirm_above")
    }
}

impl Config {
    /// The originator of confirmation codes.
    pub(crate) fn pin_from(&self) -> anyhow::Result<Originator> {
        Originator::parse(&self.senders.pin_from).context("senders.pin_from")
    }

    /// Words such as STOP.
    pub(crate) fn words(&self) -> Arc<Words> {
        let OptOutWords {
            stop_words,
            start_words,
            help_words,
        } = &self.optout;
        Arc::new(Words::new(stop_words, start_words, help_words))
    }
}
