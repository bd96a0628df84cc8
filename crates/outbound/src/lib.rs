//! Every way out of the service: carriers, callbacks, guarded fetches.
//!
//! What belongs here: the connectors that hand messages to a network (a simulated one, SMPP, an upstream that speaks
//! our own API), the delivery of callbacks, and the guard that decides which addresses may be dialled.
//!
//! What never enters: rules. What is sent, to whom and what follows from the answer is decided in `engine`.
//!
//! HTTP goes out through hyper and the pool of hyper-util, not through a client with everything: the connector is ours
//! anyway, because the address that the guard has checked must be the very address that is dialled; and redirects,
//! proxies, cookies and content codings, which such a client adds, are all things that must not happen here. It is
//! also the faster way, which counts at ten thousand callbacks a second.

mod absent;
pub mod callback;
pub mod client_document;
pub mod dial;
mod exchange;
pub mod guard;
pub mod image;
mod own_api;
mod pace;
pub mod resolve;
pub mod signature;
pub mod simulator;
pub mod smpp;
pub mod smsc;
pub mod upstream;
pub mod url_check;

pub use absent::Absent;
pub use callback::{CallbackClient, CallbackOptions};
pub use client_document::{DocumentFetch, DocumentOptions};
pub use dial::{Dialer, DialerOptions};
pub use guard::{Forbidden, Guard};
pub use image::{ImageCheck, ImageOptions};
pub use own_api::{NoAnswer, OwnApi};
pub use resolve::{DnsOptions, DnsResolver, Resolve, SharedLookups, SystemResolver};
pub use simulator::Simulator;
pub use smpp::{SmppCarrier, SmppSettings};
pub use smsc::{Smsc, SmscSettings};
pub use upstream::{Upstream, UpstreamReports, UpstreamSettings};
pub use url_check::UrlCheck;
