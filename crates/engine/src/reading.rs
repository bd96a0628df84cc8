//! Reading back: messages, their history, traffic figures and the state of the service.

pub mod history;
pub mod messages;
pub mod operations;
pub mod traffic;
