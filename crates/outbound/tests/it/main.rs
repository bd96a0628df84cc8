//! Callbacks to real receivers on this machine, images and documents from them, and messages to an SMSC and to an upstream that do what
//! a test tells them to: what they answer, how they fail, and whom we never call.

mod answers;
mod client_documents;
mod connections;
mod images;
mod names;
mod reach;
mod receiver;
mod samples;
mod setup;
mod smpp;
mod tls;
mod upstream;
mod url_check;
