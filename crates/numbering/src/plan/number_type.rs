//! The type of a number: mobile or landline.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberType {
    Mobile,
    Landline,
    /// Anything else: toll-free, premium, internet telephony and similar, and numbers of plans that do not separate
    /// landline from mobile, such as the North American one.
    Unknown,
}

impl NumberType {
    /// The name in REST responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Landline => "landline",
            Self::Unknown => "unknown",
        }
    }
}
