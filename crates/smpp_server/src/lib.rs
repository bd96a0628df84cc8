//! SMPP for customers: they bind, submit messages, and get receipts and messages from handsets.
//!
//! * [`SmppServer`] listens. Each connection is one task: it binds, submits to the engine as `POST /sms` does, and
//!   answers after the commit.
//! * [`SmppSessions`] knows which users are bound to this node. Receipts and messages from handsets are callbacks whose
//!   address names a user instead of a URL. They wait in the callback queue until a node has a session of that user.
//!
//! Rules and SQL do not belong here.

mod activity;
mod check;
mod deliver;
mod listen;
mod order;
mod outgoing;
mod receipt_request;
mod report;
mod requests;
mod server;
mod session;
mod sessions;
mod time;

pub use check::check_frame;
pub use server::{Ending, Settings, SmppServer};
pub use sessions::SmppSessions;
