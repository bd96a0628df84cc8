//! Lengths of numbers, in digits.

/// A set of lengths: bit `n` is set for `n` digits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LengthSet(u32);

#[derive(Clone, Copy, Default)]
pub(crate) struct Lengths {
    /// Of complete national numbers.
    pub(super) whole: LengthSet,
    /// Of numbers that are only dialled within an area.
    pub(super) local: LengthSet,
}

/// How a length compares with those of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Complete numbers have this length.
    Whole,
    /// Only numbers without their area code have this length.
    Local,
    TooShort,
    TooLong,
    /// Complete numbers are shorter or longer.
    Between,
}

impl LengthSet {
    /// Reads lengths separated by commas, or `-` for none.
    pub(super) fn read(text: &str) -> Self {
        let lengths = text.split(',').filter(|&length| length != "-");
        Self(lengths.fold(0, |set, length| {
            set | 1 << length.parse::<u32>().expect("a length is a number")
        }))
    }

    pub(super) fn has(self, digits: usize) -> bool {
        digits < 32 && self.0 & (1 << digits) != 0
    }

    pub(super) fn longest(self) -> usize {
        usize::try_from(self.0.checked_ilog2().unwrap_or(0)).expect("below 32")
    }

    fn shortest(self) -> usize {
        usize::try_from(self.0.trailing_zeros()).expect("at most 32")
    }
}

impl Lengths {
    /// Compares a length with the plan. A length that is dialled within an area counts as local, even if complete
    /// numbers share it.
    pub(crate) fn classify(self, digits: usize) -> Length {
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
    fn lengths_are_classified() {
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
            assert_eq!(lengths.classify(digits), expected, "{digits} digits");
        }
        assert!(LengthSet::read("-") == LengthSet::default());
    }
}
