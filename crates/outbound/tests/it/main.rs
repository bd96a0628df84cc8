//! Callbacks to real receivers on this machine: what they answer, how they fail, and whom we never call.

mod answers;
mod connections;
mod reach;
mod receiver;
mod setup;
mod tls;
mod url_check;
