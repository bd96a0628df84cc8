//! What a number is for.

/// What a number is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// A mobile number.
    Mobile,
    /// A fixed line.
    Landline,
    /// Anything else: toll-free, premium, internet telephony and the like, and numbers of plans that do not tell fixed
    /// lines from mobile ones, such as the American.
    Unknown,
}

impl NumberType {
    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Landline => "landline",
            Self::Unknown => "unknown",
        }
    }
}
