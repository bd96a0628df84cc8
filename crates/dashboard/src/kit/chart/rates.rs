//! Charts of delivery rates: columns of the same height, divided by final state.

use super::columns::{BOTTOM, Columns, LEFT};
use super::{BELOW, Bar, COLUMNS_HEIGHT, Chart, Item, TOP, WIDTH, lengths};
use crate::kit::format::count;

impl Chart {
    /// Columns side by side, each from 0 to 100 %.
    pub(crate) fn rates(
        id: &'static str,
        title: &'static str,
        dimension: &'static str,
        items: Vec<Item>,
    ) -> Self {
        let columns = Columns::new(LEFT, items.len());
        let bar = |(place, item): (usize, &Item)| {
            let mut y = BOTTOM;
            let lengths = lengths(&item.tally, COLUMNS_HEIGHT, item.tally.all().max(1));
            let pieces = lengths.map(|(kind, height)| {
                // Pieces that would be too small to be seen take a little more than their share.
                let height = height.min(y - TOP);
                y -= height;
                columns.piece(place, kind, y, height)
            });
            Bar {
                address: item.address.clone(),
                pieces: pieces.filter(|piece| piece.height > 0).collect(),
                name: format!(
                    "{}: {} of {} delivered",
                    item.name,
                    item.tally.share(),
                    count(item.tally.all())
                ),
            }
        };
        let lines = (0..=2).map(|half| columns.line(half, format!("{} %", half * 50)));
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
}

fn describe(dimension: &str, items: &[Item]) -> String {
    let dimension = dimension.to_lowercase();
    let with_messages = items.iter().filter(|item| item.tally.all() > 0);
    let rate =
        |item: &&Item| u128::from(item.tally.delivered) * 1_000_000 / u128::from(item.tally.all());
    match with_messages.min_by_key(rate) {
        Some(item) => format!(
            "Delivery rate by {dimension}. The lowest: {}, {}.",
            item.name,
            item.tally.share()
        ),
        None => format!("Delivery rate by {dimension}: no messages."),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::item;
    use super::*;

    #[test]
    fn every_column_is_divided_by_its_own_messages() {
        let items = vec![item("a", 3, 1, 0), item("b", 0, 0, 0), item("c", 30, 0, 30)];
        let chart = Chart::rates("x", "Delivery rate", "Day", items);
        let heights = |bar: &Bar| -> Vec<(&str, u64)> {
            let pieces = bar.pieces.iter();
            pieces.map(|piece| (piece.kind, piece.height)).collect()
        };
        assert_eq!(
            heights(&chart.bars[0]),
            [("delivered", 120), ("failed", 40)]
        );
        assert_eq!(heights(&chart.bars[1]), []);
        assert_eq!(
            heights(&chart.bars[2]),
            [("delivered", 80), ("expired", 80)]
        );
        assert_eq!(chart.bars[0].name, "a: 75.0 % of 4 delivered");
        assert_eq!(
            chart.description,
            "Delivery rate by day. The lowest: c, 50.0 %."
        );
        let axis: Vec<_> = chart
            .labels
            .iter()
            .take(3)
            .map(|label| &label.text)
            .collect();
        assert_eq!(axis, ["0 %", "50 %", "100 %"]);
        let none = Chart::rates("x", "Delivery rate", "Day", Vec::new());
        assert_eq!(none.description, "Delivery rate by day: no messages.");
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside(numbers in prop::collection::vec((0..u64::MAX / 8, 0..u64::MAX / 8, 0..u64::MAX / 8), 0..60)) {
            let items: Vec<_> = numbers.iter().map(|&(a, b, c)| item("x", a, b, c)).collect();
            let chart = Chart::rates("x", "x", "x", items);
            for piece in chart.bars.iter().flat_map(|bar| &bar.pieces) {
                prop_assert!(piece.x + piece.width <= chart.width);
                prop_assert!(piece.y >= TOP && piece.y + piece.height <= chart.height);
                prop_assert!(piece.width > 0 && piece.height > 0);
            }
        }
    }
}
