//! Carriers that use SMPP.
//!
//! The crate `smpp` implements the protocol. This module decides how a text becomes short messages, which error code an
//! answer or a receipt means, and when to connect, wait and slow down.

mod carrier;
mod compose;
mod counts;
mod handset;
mod incoming;
mod link;
mod metrics;
mod parts;
pub mod receipt;
mod reference;
pub(crate) mod refusal;
mod settings;

mod tls;

use domain::Code;

pub use carrier::SmppCarrier;
pub use reference::IdForm;
pub use settings::{BindMode, Gsm7Form, LongText, SmppSettings, SmppTls};

/// The code with this number. The tests of the tables prove that it exists.
fn code(number: u16) -> Code {
    Code::new(number).expect("the tables hold numbers of the catalogue")
}
