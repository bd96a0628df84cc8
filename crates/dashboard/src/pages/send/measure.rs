//! The size of a text in parts, and its price.

use domain::Money;
use domain::message::text::{Coding, Fill, fill, is_gsm7};
use engine::sending::submit::Cost;

use super::draft::Draft;
use super::{costs, words};
use crate::Dashboard;
use crate::kit::form_input::sentence;
use crate::kit::format::{Amount, count, money};
use crate::kit::location::Locations;
use crate::kit::session::Member;

const MAX_LISTED: usize = 10;
const MAX_NAMED: usize = 12;
const MAX_VIBER_CHARS: usize = 1000;

pub(crate) struct Measure {
    pub(crate) text: Text,
    /// The price, or why it is unknown.
    pub(crate) price: Result<Price, String>,
}

pub(crate) struct Text {
    pub(crate) characters: String,
    pub(crate) coding: &'static str,
    pub(crate) parts: String,
    /// How many characters are left.
    pub(crate) room: String,
    pub(crate) problem: Option<String>,
    /// The characters that are not in GSM-7, each once.
    pub(crate) foreign: Vec<Foreign>,
    /// The text in pieces, to mark those characters; empty if there are none.
    pub(crate) pieces: Vec<Piece>,
}

/// A character that is not in GSM-7.
pub(crate) struct Foreign {
    pub(crate) character: char,
    pub(crate) code: String,
}

pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) is_foreign: bool,
}

pub(crate) struct Price {
    pub(crate) total: String,
    /// How the total is calculated.
    pub(crate) sum: String,
    /// The remaining balance; `None` if it is too low.
    pub(crate) left: Option<Amount>,
    pub(crate) rows: Vec<RecipientRow>,
    /// Number of recipients that are not listed.
    pub(crate) more: usize,
}

pub(crate) struct RecipientRow {
    pub(crate) to: String,
    pub(crate) location: String,
    pub(crate) price: String,
}

impl Measure {
    pub(crate) async fn new(dashboard: &Dashboard, member: &Member, draft: &Draft) -> Self {
        let text = if draft.is_viber {
            Text::viber(&draft.message)
        } else {
            Text::new(&draft.message)
        };
        let price = if !draft.is_addressed() {
            Err("Fill in sender and recipient to see the price.".to_owned())
        } else if text.problem.is_some() {
            Err("Enter the text to see the price.".to_owned())
        } else {
            dashboard.price(member, draft).await
        };
        Self { text, price }
    }
}

impl Dashboard {
    async fn price(&self, member: &Member, draft: &Draft) -> Result<Price, String> {
        let currency = &self.settings.currency;
        let costs = match costs(self, member, draft).await {
            Ok(costs) => costs,
            Err(error) => return Err(words(error, currency)),
        };
        let total = costs
            .iter()
            .fold(Money::ZERO, |sum, cost| sum.plus(cost.total));
        let catalogues = self.engine.catalogues.live();
        let locations = Locations::new(&catalogues);
        let row = |cost: &Cost| RecipientRow {
            to: cost.to.to_string(),
            location: locations.short(Some(&cost.to), cost.network),
            price: money(cost.total, currency),
        };
        let left = member.account.balance.minus(total);
        let can_pay = left
            .micros()
            .saturating_add(member.account.rules.credit_limit.micros())
            >= 0;
        Ok(Price {
            total: money(total, currency),
            sum: sum_words(&costs, draft, currency),
            left: can_pay.then(|| Amount::new(left, currency)),
            rows: costs.iter().take(MAX_LISTED).map(row).collect(),
            more: costs.len().saturating_sub(MAX_LISTED),
        })
    }
}

fn sum_words(costs: &[Cost], draft: &Draft, currency: &str) -> String {
    if !draft.test_mode.is_empty() {
        return "test mode is free of charge".to_owned();
    }
    let parts = costs.first().map_or(0, |cost| cost.shape.parts);
    let noun = if draft.is_viber { "message" } else { "part" };
    let parts = counted(parts.into(), noun);
    match costs {
        [only] => format!("{parts} × {}", money(only.per_part, currency)),
        many => format!("{parts} × {}", counted(many.len(), "recipient")),
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as u64))
}

impl Text {
    fn viber(text: &str) -> Self {
        let characters = text.chars().count();
        Self {
            characters: format!(
                "{} of {}",
                count(characters as u64),
                count(MAX_VIBER_CHARS as u64)
            ),
            coding: "Unicode, by Viber",
            parts: "1".to_owned(),
            room: String::new(),
            problem: match characters {
                0 => Some(String::new()),
                many if many > MAX_VIBER_CHARS => {
                    Some("The text is too long for Viber.".to_owned())
                }
                _ => None,
            },
            foreign: Vec::new(),
            pieces: Vec::new(),
        }
    }

    fn new(text: &str) -> Self {
        let filled = fill(text);
        let mut foreign: Vec<char> = text.chars().filter(|c| !is_gsm7(*c)).collect();
        foreign.sort_unstable();
        foreign.dedup();
        foreign.truncate(MAX_NAMED);
        let shape = filled.as_ref().ok().map(|filled| filled.shape);
        Self {
            characters: count(text.chars().count() as u64),
            coding: match shape.map(|shape| shape.coding) {
                Some(Coding::Ucs2) => "UCS-2",
                Some(Coding::Binary) => "8-bit",
                _ => "GSM-7",
            },
            parts: shape.map_or_else(|| "0".to_owned(), |shape| shape.parts.to_string()),
            room: filled.as_ref().map_or_else(|_| String::new(), room),
            problem: match &filled {
                Err(error) if !text.is_empty() => Some(sentence(&error.to_string())),
                Err(_) => Some(String::new()),
                Ok(_) => None,
            },
            pieces: if foreign.is_empty() {
                Vec::new()
            } else {
                pieces(text)
            },
            foreign: foreign
                .into_iter()
                .map(|character| Foreign {
                    character,
                    code: format!("U+{:04X}", u32::from(character)),
                })
                .collect(),
        }
    }
}

fn room(filled: &Fill) -> String {
    let limit = match filled.shape.parts {
        1 => format!("{} of {}", filled.units, filled.per_part),
        _ => format!("{} in parts of {}", filled.units, filled.per_part),
    };
    format!("{limit}, {} left", filled.room)
}

/// Splits a text into runs of characters inside and outside GSM-7.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for character in text.chars() {
        let is_foreign = !is_gsm7(character);
        match pieces.last_mut() {
            Some(piece) if piece.is_foreign == is_foreign => piece.text.push(character),
            _ => pieces.push(Piece {
                text: character.to_string(),
                is_foreign,
            }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_characters_are_cut_out() {
        let cut = |text| {
            let pieces = pieces(text);
            let shown = pieces
                .iter()
                .map(|piece| (piece.text.clone(), piece.is_foreign));
            shown.collect::<Vec<_>>()
        };
        let piece = |text: &str, is_foreign| (text.to_owned(), is_foreign);
        assert_eq!(
            cut("It’s a naïve “test”"),
            [
                piece("It", false),
                piece("’", true),
                piece("s a na", false),
                piece("ï", true),
                piece("ve ", false),
                piece("“", true),
                piece("test", false),
                piece("”", true),
            ]
        );
        assert_eq!(cut(""), []);
    }

    #[test]
    fn a_text_is_described() {
        for (text, coding, parts, room, foreign) in [
            ("Hello", "GSM-7", "1", "5 of 160, 155 left", 0),
            ("Hello €", "GSM-7", "1", "8 of 160, 152 left", 0),
            ("Ž", "UCS-2", "1", "1 of 70, 69 left", 1),
            ("", "GSM-7", "0", "", 0),
        ] {
            let shown = Text::new(text);
            let got = (shown.coding, shown.parts.as_str(), shown.room.as_str());
            assert_eq!(got, (coding, parts, room), "{text:?}");
            assert_eq!(shown.foreign.len(), foreign, "{text:?}");
        }
    }
}
