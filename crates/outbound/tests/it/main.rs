//! Callbacks to real receivers on this machine, and images from them: what they answer, how they fail, and whom we
//! never call. And messages to an upstream that does what a test tells it to.

mod answers;
mod connections;
mod images;
mod reach;
mod receiver;
mod samples;
mod setup;
mod tls;
mod upstream;
mod url_check;
