//! The pure rules of the service.
//!
//! This crate holds types that prove their own validity (numbers, originators, texts, tokens, money), the states of a
//! message, and the port traits through which other crates reach a database or a clock.
//!
//! It contains no async runtime, HTTP or SQL, and does not read the wall clock or a source of randomness. Time and
//! random bytes are arguments, so every rule can be tested by a table.

pub mod access;
pub mod alert;
pub mod billing;
pub mod block;
pub mod callback_url;
pub mod clock;
pub mod code_cap;
pub mod delivery;
pub mod encryption;
pub mod ids;
pub mod inbound;
pub mod kill_point;
pub mod message;
pub mod money;
pub mod note;
pub mod number;
pub mod oauth;
pub mod opt_out;
pub mod person;
pub mod ports;
pub mod quoted;
pub mod role;
pub mod sender;
mod sha256;
pub mod smpp_user;
pub mod template;
pub mod trace;
pub mod verify;

pub use access::permission::{Permission, Permissions};
pub use access::token::{TokenHash, TokenSecret};
pub use access::{Access, AccountName, AllowList};
pub use callback_url::CallbackUrl;
pub use clock::Clock;
pub use delivery::receiver::{Origin, ReceiverId};
pub use encryption::{KeyId, KeyRing, ServiceKey};
pub use ids::{
    AccountId, CallbackId, GrantId, MessageId, NodeId, PersonId, PoolId, SenderId, SmppUserId,
    TokenId, VerificationId,
};
pub use jiff::Timestamp;
pub use message::channel::Channel;
pub use message::code::Code;
pub use message::interactive::{Action, ActionTitle, ImageUrl, Interactive};
pub use message::outcome::Outcome;
pub use message::{Holder, MessageState, Priority, Submission, TestMode};
pub use money::Money;
pub use number::country::Country;
pub use number::msisdn::Msisdn;
pub use number::network::Network;
pub use person::{Email, Person, Role};
pub use sender::originator::Originator;
pub use sha256::sha256;
pub use trace::TraceContext;
