//! Fair shares of a number of equal things.

/// The fair share at position `position` (from 0) among `count` sharers: all get the same, and the remainder goes to
/// the first ones. It is 0 if there are no sharers or the position is beyond the last.
///
/// With nodes in the order of their IDs, shares move as little as possible: a node that joins is last and takes only
/// its own share from the others, and when a node leaves the others only gain.
pub fn fair_share(total: u16, position: usize, count: usize) -> u16 {
    if position >= count {
        return 0;
    }
    let total = usize::from(total);
    let share = total / count + usize::from(position < total % count);
    u16::try_from(share).expect("no more than the total")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(total: u16, of: usize) -> Vec<u16> {
        (0..of)
            .map(|position| fair_share(total, position, of))
            .collect()
    }

    #[test]
    fn the_remainder_goes_to_the_first() {
        for (total, of, expected) in [
            (2, 1, &[2][..]),
            (2, 2, &[1, 1]),
            (2, 3, &[1, 1, 0]),
            (4, 3, &[2, 1, 1]),
            (5, 3, &[2, 2, 1]),
            (0, 2, &[0, 0]),
        ] {
            assert_eq!(shares(total, of), expected, "{total} among {of}");
        }
        assert_eq!(fair_share(3, 0, 0), 0);
        assert_eq!(fair_share(3, 2, 2), 0);
    }

    proptest! {
        #[test]
        fn shares_add_up_and_differ_by_at_most_one(total: u16, of in 1_usize..50) {
            let shares = shares(total, of);
            prop_assert_eq!(shares.iter().map(|share| usize::from(*share)).sum::<usize>(), usize::from(total));
            let (least, most) = (shares.iter().min(), shares.iter().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        }

        /// No other node gains when one joins, and none loses when one leaves.
        #[test]
        fn shares_move_as_little_as_possible(total: u16, of in 1_usize..50, gone in 0_usize..50) {
            let (few, many) = (shares(total, of), shares(total, of + 1));
            prop_assert!(few.iter().zip(&many).all(|(few, many)| many <= few), "one joins");
            let gone = gone % (of + 1);
            let stay = many.iter().enumerate().filter(|(position, _)| *position != gone).map(|(_, share)| share);
            prop_assert!(stay.zip(&few).all(|(before, after)| before <= after), "one goes");
        }
    }
}
