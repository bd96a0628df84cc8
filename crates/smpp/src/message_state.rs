//! The states of a message in `message_state` and `query_sm_resp`.

/// Scheduled for later (5.0).
pub const SCHEDULED: u8 = 0;
/// On its way.
pub const ENROUTE: u8 = 1;
/// Delivered to the phone.
pub const DELIVERED: u8 = 2;
/// Its validity period ended.
pub const EXPIRED: u8 = 3;
/// Cancelled.
pub const DELETED: u8 = 4;
/// Cannot be delivered.
pub const UNDELIVERABLE: u8 = 5;
/// Accepted on behalf of the receiver.
pub const ACCEPTED: u8 = 6;
/// Unknown.
pub const UNKNOWN: u8 = 7;
/// Refused.
pub const REJECTED: u8 = 8;
/// Accepted, but deliberately not sent (5.0).
pub const SKIPPED: u8 = 9;
