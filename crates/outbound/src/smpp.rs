//! Carriers that speak SMPP.
//!
//! The protocol itself is the `smpp` room's. Here is what the product makes of it: how a text becomes short messages, what
//! an answer or a receipt means in the words of the catalogue, and when to connect, to wait, to slow down.

mod carrier;
mod compose;
mod incoming;
mod link;
mod metrics;
mod parts;
pub mod receipt;
mod reference;
pub(crate) mod refusal;
mod settings;
mod tally;
mod tls;

use domain::Code;

pub use carrier::SmppCarrier;
pub use reference::IdForm;
pub use settings::{BindMode, Gsm7Form, LongText, SmppSettings, SmppTls};

/// A code by its number, for the tables; their tests prove that it is in the catalogue.
fn code(number: u16) -> Code {
    Code::new(number).expect("the tables hold numbers of the catalogue")
}
