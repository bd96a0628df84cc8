//! How many digits numbers have.

/// A set of lengths: bit `n` stands for `n` digits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LengthSet(u32);

/// The lengths of the numbers of a region.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lengths {
    /// Of a whole national number.
    pub(super) whole: LengthSet,
    /// Of what is dialled only within an area.
    pub(super) local: LengthSet,
}

/// What a length says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Whole numbers are that long.
    Whole,
    /// Only numbers without their area code are that long.
    Local,
    /// All whole numbers are longer.
    TooShort,
    /// All whole numbers are shorter.
    TooLong,
    /// There are shorter and longer ones.
    Between,
}

impl LengthSet {
    /// Reads numbers separated by commas, or `-` for none.
    pub(super) fn read(text: &str) -> Self {
        let lengths = text.split(',').filter(|&length| length != "-");
        Self(lengths.fold(0, |set, length| {
            set | 1 << length.parse::<u32>().expect("a length is a number")
        }))
    }

    /// Whether numbers may have so many digits.
    pub(super) fn has(self, digits: usize) -> bool {
        digits < 32 && self.0 & (1 << digits) != 0
    }

    /// The largest of the lengths.
    pub(super) fn longest(self) -> usize {
        usize::try_from(self.0.checked_ilog2().unwrap_or(0)).expect("below 32")
    }

    fn shortest(self) -> usize {
        usize::try_from(self.0.trailing_zeros()).expect("at most 32")
    }
}

impl Lengths {
    /// What so many digits are. A length dialled within an area counts as that, even if whole numbers share it.
    pub(crate) fn of(self, digits: usize) -> Length {
        if self.local.has(digits) {
            Length::Local
        } else if self.whole.has(digits) {
            Length::Whole
        } else if digits < self.whole.shortest() {
            Length::TooShort
        } else if digits > self.whole.longest() {
            Length::TooLong
        } else {
            Length::Between
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_told_from_its_neighbours() {
        let lengths = Lengths {
            whole: LengthSet::read("7,9,10"),
            local: LengthSet::read("5,9"),
        };
        for (digits, expected) in [
            (0, Length::TooShort),
            (5, Length::Local),
            (6, Length::TooShort),
            (7, Length::Whole),
            (8, Length::Between),
            (9, Length::Local),
            (10, Length::Whole),
            (11, Length::TooLong),
            (40, Length::TooLong),
        ] {
            assert_eq!(lengths.of(digits), expected, "{digits} digits");
        }
        assert!(LengthSet::read("-") == LengthSet::default());
    }
}
