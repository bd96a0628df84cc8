//! The states of a message, as `message_state` and `query_sm_resp` tell them.

/// Waits for its time; of 5.0.
pub const SCHEDULED: u8 = 0;
/// On its way.
pub const ENROUTE: u8 = 1;
/// On the phone.
pub const DELIVERED: u8 = 2;
/// Its validity period ended.
pub const EXPIRED: u8 = 3;
/// Taken back.
pub const DELETED: u8 = 4;
/// Cannot be delivered.
pub const UNDELIVERABLE: u8 = 5;
/// Taken over by somebody on behalf of the receiver.
pub const ACCEPTED: u8 = 6;
/// Nobody knows.
pub const UNKNOWN: u8 = 7;
/// Refused.
pub const REJECTED: u8 = 8;
/// Accepted, and deliberately not sent on; of 5.0.
pub const SKIPPED: u8 = 9;
