//! The path of a message: submitted, routed, handed to a carrier, settled by its receipts.

pub mod bulk;
pub(crate) mod carriers;
pub mod dispatch;
pub mod polls;
pub mod published_rules;
pub mod receipts;
pub mod routing;
pub mod submit;
pub mod templates;
