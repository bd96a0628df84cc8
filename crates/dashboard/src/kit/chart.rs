//! Charts of messages as SVG: bars, stacked by final state.
//!
//! Readable without colour: delivered is solid, failed is hatched, expired is dotted; each bar has a title with its
//! numbers, and each chart has a table.

mod columns;
pub(crate) mod latency;
mod rates;

use domain::Money;
use engine::reading::traffic::Totals;

use self::columns::{BOTTOM, Columns};
use crate::kit::format::{Amount, count, percent};

/// Lengths are in units of the drawing, which the browser scales.
const WIDTH: u64 = 1000;
const COLUMNS_HEIGHT: u64 = 160;
const TOP: u64 = 12;
const BELOW: u64 = 24;
/// More labels below the columns would overlap.
const MAX_LABELS: usize = 8;
/// Rows are drawn smaller, three charts side by side.
const ROWS_WIDTH: u64 = 300;
/// Width of the names beside rows.
const NAMES: u64 = 140;
/// Width of a digit, in charts of columns and of rows.
const COLUMN_DIGIT: u64 = 8;
const ROW_DIGIT: u64 = 6;
const ROW: u64 = 26;
const ROW_BAR: u64 = 14;
/// Longer names do not fit into `NAMES`.
const NAME_CHARS: usize = 18;
/// Even the smallest number is visible.
const LEAST: u64 = 2;

/// How many messages ended in which final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    pub(crate) expired: u64,
    pub(crate) cost: Money,
}

impl From<Totals> for Tally {
    fn from(totals: Totals) -> Self {
        Self {
            delivered: totals.delivered,
            failed: totals.failed,
            expired: totals.expired,
            cost: totals.cost,
        }
    }
}

impl Tally {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            failed: self.failed + other.failed,
            expired: self.expired + other.expired,
            cost: self.cost.plus(other.cost),
        }
    }

    pub(crate) fn all(&self) -> u64 {
        self.delivered + self.failed + self.expired
    }

    pub(crate) fn share(&self) -> String {
        percent(self.delivered, self.all())
    }

    /// The cost with two decimals, without its currency.
    pub(crate) fn short_cost(&self) -> String {
        Amount::new(self.cost, "").short.trim_end().to_owned()
    }

    fn kinds(&self) -> [(&'static str, u64); 3] {
        [
            ("delivered", self.delivered),
            ("failed", self.failed),
            ("expired", self.expired),
        ]
    }

    fn words(&self) -> String {
        let kinds = self.kinds().into_iter().filter(|(_, number)| *number > 0);
        let kinds: Vec<String> = kinds
            .map(|(kind, number)| format!("{} {kind}", count(number)))
            .collect();
        if kinds.is_empty() {
            "none".to_owned()
        } else {
            kinds.join(", ")
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Short, for the axis.
    pub(crate) label: String,
    /// For the table, and for the title of the bar.
    pub(crate) name: String,
    pub(crate) tally: Tally,
    /// The list of the messages behind it.
    pub(crate) address: Option<String>,
}

pub(crate) struct Chart {
    /// Unique on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: String,
    /// The heading of the first column of the table.
    pub(crate) dimension: &'static str,
    /// `by-time` or `by-name`, for the style sheet.
    pub(crate) kind: &'static str,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) labels: Vec<Label>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) items: Vec<Item>,
}

pub(crate) struct Line {
    pub(crate) from: u64,
    pub(crate) y: u64,
}

pub(crate) struct Label {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) anchor: &'static str,
    pub(crate) text: String,
}

pub(crate) struct Bar {
    pub(crate) address: Option<String>,
    pub(crate) name: String,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: &'static str,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Chart {
    pub(crate) fn is_blank(&self) -> bool {
        self.items.iter().all(|item| item.tally.all() == 0)
    }

    /// Columns side by side, for hours and days.
    pub(crate) fn columns(
        id: &'static str,
        title: &'static str,
        dimension: &'static str,
        items: Vec<Item>,
    ) -> Self {
        let most = ceiling(items.iter().map(|item| item.tally.all()).max());
        let columns = Columns::new(room_for(most, COLUMN_DIGIT), items.len());
        let bar = |(place, item): (usize, &Item)| {
            let mut y = BOTTOM;
            let lengths = lengths(&item.tally, COLUMNS_HEIGHT, most);
            let pieces = lengths.map(|(kind, height)| {
                y = y.saturating_sub(height);
                columns.piece(place, kind, y, height)
            });
            Bar {
                address: item.address.clone(),
                pieces: pieces.collect(),
                name: format!("{}: {}", item.name, item.tally.words()),
            }
        };
        // An odd maximum has no whole number in the middle.
        let middle = most.is_multiple_of(2).then_some((1, most / 2));
        let marks = [Some((0, 0)), middle, Some((2, most))];
        let lines = marks
            .into_iter()
            .flatten()
            .map(|(halves, number)| columns.line(halves, count(number)));
        let (lines, mut labels): (Vec<_>, Vec<_>) = lines.unzip();
        labels.extend(columns.labels(items.iter().map(|item| item.label.clone())));
        Self {
            id,
            title,
            description: describe(dimension, &items),
            dimension,
            kind: "by-time",
            width: WIDTH,
            height: BOTTOM + BELOW,
            lines,
            labels,
            bars: items.iter().enumerate().map(bar).collect(),
            items,
        }
    }

    /// Rows below each other, for named items.
    pub(crate) fn rows(
        id: &'static str,
        title: &'static str,
        dimension: &'static str,
        items: Vec<Item>,
    ) -> Self {
        let most = items.iter().map(|item| item.tally.all()).max();
        let most = most.unwrap_or(0).max(1);
        let room = ROWS_WIDTH - NAMES - room_for(most, ROW_DIGIT);
        let top = |place: usize| ROW * place as u64;
        let bar = |(place, item): (usize, &Item)| {
            let mut x = NAMES;
            let lengths = lengths(&item.tally, room, most);
            let pieces = lengths.map(|(kind, width)| {
                let from = x;
                x += width;
                Piece {
                    kind,
                    x: from,
                    y: top(place) + (ROW - ROW_BAR) / 2,
                    width,
                    height: ROW_BAR,
                }
            });
            Bar {
                address: item.address.clone(),
                pieces: pieces.collect(),
                name: format!("{}: {}", item.name, item.tally.words()),
            }
        };
        let labels = items.iter().enumerate().flat_map(|(place, item)| {
            let y = top(place) + ROW / 2 + 4;
            [
                Label {
                    x: NAMES - 12,
                    y,
                    anchor: "end",
                    text: crate::kit::format::shorten(&item.label, NAME_CHARS),
                },
                Label {
                    x: ROWS_WIDTH,
                    y,
                    anchor: "end",
                    text: count(item.tally.all()),
                },
            ]
        });
        Self {
            id,
            title,
            description: describe(dimension, &items),
            dimension,
            kind: "by-name",
            width: ROWS_WIDTH,
            height: top(items.len()).max(ROW),
            lines: Vec::new(),
            labels: labels.collect(),
            bars: items.iter().enumerate().map(bar).collect(),
            items,
        }
    }
}

/// Width of the largest number with a margin. Numbers of more than twelve digits may overlap.
fn room_for(most: u64, digit: u64) -> u64 {
    let digits = count(most).chars().count() as u64;
    (digits.min(15) + 2) * digit
}

fn lengths(tally: &Tally, room: u64, most: u64) -> impl Iterator<Item = (&'static str, u64)> {
    let kinds = tally.kinds().into_iter().filter(|(_, number)| *number > 0);
    kinds.map(move |(kind, number)| {
        let length = u128::from(number) * u128::from(room) / u128::from(most);
        let length = u64::try_from(length).unwrap_or(room);
        (kind, length.max(LEAST))
    })
}

/// The next round number: 1, 2 or 5 with zeros.
fn ceiling(most: Option<u64>) -> u64 {
    let most = most.unwrap_or(0).max(1);
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 5] {
            match unit.checked_mul(step) {
                Some(round) if round >= most => return round,
                Some(_) => {}
                None => return most,
            }
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return most,
        }
    }
}

fn describe(dimension: &str, items: &[Item]) -> String {
    let busiest = items.iter().max_by_key(|item| item.tally.all());
    let dimension = dimension.to_lowercase();
    match busiest.filter(|item| item.tally.all() > 0) {
        Some(item) => format!(
            "Messages by {dimension}, stacked by how they ended. The most: {}, {}.",
            item.name,
            item.tally.words()
        ),
        None => format!("Messages by {dimension}: none."),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn item(name: &str, delivered: u64, failed: u64, expired: u64) -> Item {
        Item {
            label: name.to_owned(),
            name: name.to_owned(),
            tally: Tally {
                delivered,
                failed,
                expired,
                cost: Money::ZERO,
            },
            address: None,
        }
    }

    #[test]
    fn messages_are_counted_by_final_state() {
        let totals = Totals {
            sent: 10,
            delivered: 7,
            failed: 2,
            expired: 1,
            cost: Money::from_micros(20_000),
            ..Totals::default()
        };
        let tally = Tally::from(totals);
        assert_eq!((tally.delivered, tally.failed, tally.expired), (7, 2, 1));
        assert_eq!((tally.all(), tally.share().as_str()), (10, "70.0 %"));
        assert_eq!(tally.plus(tally).cost, Money::from_micros(40_000));
        assert_eq!(tally.short_cost(), "0.02");
        assert_eq!(tally.words(), "7 delivered, 2 failed, 1 expired");
        assert_eq!(Tally::default().words(), "none");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, round) in [
            (None, 1),
            (Some(0), 1),
            (Some(1), 1),
            (Some(3), 5),
            (Some(5), 5),
            (Some(6), 10),
            (Some(11), 20),
            (Some(1_001), 2_000),
            (Some(u64::MAX), u64::MAX),
        ] {
            assert_eq!(ceiling(most), round, "{most:?}");
        }
    }

    #[test]
    fn columns_are_stacked_from_the_bottom() {
        let items = vec![item("a", 5, 4, 1), item("b", 0, 0, 0), item("c", 0, 1, 0)];
        let chart = Chart::columns("x", "By hour", "Hour", items);
        let [a, b, c] = &chart.bars[..] else {
            panic!("a bar for each")
        };
        let kinds: Vec<_> = a
            .pieces
            .iter()
            .map(|piece| (piece.kind, piece.height))
            .collect();
        assert_eq!(kinds, [("delivered", 80), ("failed", 64), ("expired", 16)]);
        assert_eq!(a.pieces[0].y + a.pieces[0].height, BOTTOM);
        assert_eq!(a.pieces[1].y + a.pieces[1].height, a.pieces[0].y);
        assert_eq!(a.pieces[2].y, TOP, "the most reaches the top");
        assert_eq!(b.pieces, [], "nothing is drawn for nothing");
        assert_eq!(c.name, "c: 1 failed");
        let axis: Vec<_> = chart
            .labels
            .iter()
            .take(3)
            .map(|label| label.text.as_str())
            .collect();
        assert_eq!(axis, ["0", "5", "10"]);
        assert_eq!(
            chart.description,
            "Messages by hour, stacked by how they ended. The most: a, 5 delivered, 4 failed, 1 expired."
        );
    }

    #[test]
    fn many_columns_have_few_labels() {
        let items: Vec<_> = (0..48)
            .map(|hour| item(&format!("{hour}:00"), 1, 0, 0))
            .collect();
        let chart = Chart::columns("x", "By hour", "Hour", items);
        let below = chart.labels.iter().filter(|label| label.anchor == "middle");
        let below: Vec<_> = below.map(|label| label.text.as_str()).collect();
        assert_eq!(below.first().copied(), Some("0:00"));
        assert_eq!(below.len(), MAX_LABELS);
    }

    #[test]
    fn numbers_do_not_overlap_bars() {
        for number in [1, 1_000, 324_690, 12_345_678] {
            let chart = Chart::rows("x", "x", "x", vec![item("x", number, 0, 0)]);
            let piece = &chart.bars[0].pieces[0];
            let taken = chart.labels[1].text.len() as u64 * ROW_DIGIT;
            assert!(piece.x + piece.width + taken < chart.width, "{number}");
        }
    }

    #[test]
    fn rows_have_names_and_numbers() {
        let long = "An operator with a name that is too long";
        let chart = Chart::rows("x", "By operator", "Operator", vec![item(long, 1000, 0, 1)]);
        assert_eq!(chart.labels[0].text, "An operator with a…");
        assert_eq!(chart.labels[1].text, "1,001");
        let [delivered, expired] = &chart.bars[0].pieces[..] else {
            panic!("two kinds")
        };
        assert_eq!(expired.x, delivered.x + delivered.width);
        assert_eq!(expired.width, LEAST, "one in a thousand is seen");
        let nothing = Chart::rows("x", "By operator", "Operator", Vec::new());
        assert_eq!(nothing.description, "Messages by operator: none.");
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside(numbers in prop::collection::vec((0..u64::MAX / 8, 0..u64::MAX / 8, 0..u64::MAX / 8), 0..60)) {
            let items: Vec<_> = numbers.iter().map(|&(a, b, c)| item("x", a, b, c)).collect();
            for chart in [
                Chart::columns("x", "x", "x", items.clone()),
                Chart::rows("x", "x", "x", items),
            ] {
                // Pieces that would be too small to be seen take a little more than their share.
                let spare = 3 * LEAST;
                for piece in chart.bars.iter().flat_map(|bar| &bar.pieces) {
                    prop_assert!(piece.x + piece.width <= chart.width + spare);
                    prop_assert!(piece.y + piece.height <= chart.height);
                    prop_assert!(piece.width > 0 && piece.height > 0);
                }
            }
        }
    }
}
