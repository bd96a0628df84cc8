//! Reading back: messages, their history, traffic figures and the state of the service.

pub mod export;
pub mod found;
pub mod history;
pub mod margin;
pub mod messages;
pub mod operations;
pub mod statement;
pub mod traffic;
