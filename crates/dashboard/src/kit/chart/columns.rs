//! Where columns are drawn: side by side, all of the same width.

use super::{BELOW, COLUMN_DIGIT, COLUMNS_HEIGHT, Label, Line, MAX_LABELS, Piece, TOP, WIDTH};

pub(super) const BOTTOM: u64 = TOP + COLUMNS_HEIGHT;
/// Room for short labels of the axis.
pub(super) const LEFT: u64 = COLUMN_DIGIT * 8;

#[derive(Clone, Copy)]
pub(super) struct Columns {
    left: u64,
    number: usize,
}

impl Columns {
    pub(super) fn new(left: u64, number: usize) -> Self {
        let number = number.max(1);
        Self { left, number }
    }

    fn start(self, place: usize) -> u64 {
        self.left + (WIDTH - self.left) * place as u64 / self.number as u64
    }

    pub(super) fn piece(self, place: usize, kind: &'static str, y: u64, height: u64) -> Piece {
        let (from, until) = (self.start(place), self.start(place + 1));
        let gap = ((until - from) / 5).max(1);
        Piece {
            kind,
            x: from + gap / 2,
            y,
            width: (until - from - gap).max(1),
            height,
        }
    }

    /// A line across the columns, this many halves of their height above the bottom.
    pub(super) fn line(self, halves: u64, text: String) -> (Line, Label) {
        let y = BOTTOM - COLUMNS_HEIGHT * halves / 2;
        let label = Label {
            x: self.left - 8,
            y: y + 4,
            anchor: "end",
            text,
        };
        (Line { from: self.left, y }, label)
    }

    /// The labels below the columns, as many as have room.
    pub(super) fn labels(self, texts: impl Iterator<Item = String>) -> impl Iterator<Item = Label> {
        let step = self.number.div_ceil(MAX_LABELS);
        let texts = texts.enumerate().step_by(step);
        texts.map(move |(place, text)| Label {
            x: u64::midpoint(self.start(place), self.start(place + 1)),
            y: BOTTOM + BELOW - 6,
            anchor: "middle",
            text,
        })
    }
}
