//! Callbacks to real receivers on this machine, images from them, and messages to an SMSC: what they answer, how they
//! fail, and whom we never call.

mod answers;
mod connections;
mod images;
mod reach;
mod receiver;
mod samples;
mod setup;
mod smpp;
mod tls;
mod url_check;
