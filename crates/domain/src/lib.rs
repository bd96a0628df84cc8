//! The rules of the service, pure.
//!
//! What belongs here: types that prove their own validity (numbers, originators, texts, tokens, money), the states of
//! a message, and the port traits through which the rest of the house reaches a database or a clock.
//!
//! What never enters: an async runtime, HTTP, SQL, a read of the wall clock or of a source of randomness. Time and
//! random bytes arrive as arguments, so every rule can be tested by a table.

pub mod access;
pub mod backoff;
pub mod billing;
pub mod callback_url;
pub mod channel;
pub mod clock;
pub mod code;
pub mod code_cap;
pub mod code_text;
pub mod country;
pub mod delivery;
pub mod encryption;
pub mod ids;
pub mod interactive;
pub mod kill_point;
pub mod lookup;
pub mod message;
pub mod money;
pub mod msisdn;
pub mod network;
pub mod note;
pub mod oauth;
pub mod originator;
pub mod permission;
pub mod person;
pub mod ports;
pub mod receipt_match;
pub mod receiver;
pub mod schedule;
pub mod sender;
pub mod sharing;
pub mod shown;
pub mod text;
pub mod token;
pub mod tries;

pub use access::{Access, AccountName, AllowList};
pub use callback_url::CallbackUrl;
pub use channel::Channel;
pub use clock::Clock;
pub use code::Code;
pub use country::Country;
pub use delivery::Outcome;
pub use encryption::{KeyId, KeyRing, ServiceKey};
pub use ids::{
    AccountId, CallbackId, GrantId, MessageId, NodeId, PersonId, PoolId, SenderId, TokenId,
};
pub use interactive::{Action, ActionTitle, ImageUrl, Interactive};
pub use jiff::Timestamp;
pub use message::{Holder, MessageState, Priority, Submission, TestMode};
pub use money::Money;
pub use msisdn::Msisdn;
pub use network::Network;
pub use originator::Originator;
pub use permission::{Permission, Permissions};
pub use person::{Email, Person, Role};
pub use receiver::{Origin, ReceiverId};
pub use token::{TokenHash, TokenSecret};
