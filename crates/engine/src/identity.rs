//! Who may call, and who may sign in: accounts, tokens, people, sessions and OAuth grants.

pub mod accounts;
pub(crate) mod attempts;
pub mod connections;
pub mod gate;
pub mod grants;
pub mod hasher;
pub mod people;
pub mod rate;
pub mod request_log;
pub mod sign_in;
pub mod smpp_users;
pub mod throttle;
