//! Callbacks, images and documents with real receivers on this machine, and messages to a scripted SMSC, upstream
//! and provider: their responses, their failures, and the addresses that are never called.

mod answers;
mod client_documents;
mod connections;
mod http;
mod images;
mod names;
mod proxy;
mod reach;
mod receiver;
mod samples;
mod setup;
mod smpp;
mod tls;
mod upstream;
mod url_check;
