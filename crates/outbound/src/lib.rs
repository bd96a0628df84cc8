//! All outgoing connections: carriers, callbacks and guarded fetches.
//!
//! This crate contains the carriers (the simulator, SMPP, an upstream with the same REST API, and providers with an
//! HTTP API of their own), the delivery of callbacks, notifications and e-mail, and the guard that decides which
//! addresses may be connected to. Rules do not belong here: `engine` decides what is sent, to whom, and what follows
//! from the answer.
//!
//! HTTP uses hyper and the pool of hyper-util instead of a full client. The connector is our own anyway, because the
//! address that the guard checked must be the one connected to. Redirects, cookies, content encodings and proxies from
//! the environment, which a full client adds, must not happen here. It is also faster, which matters at ten thousand callbacks a second.

mod absent_carrier;
mod api_client;
pub mod callback;
pub mod client_document;
pub mod dial;
mod exchange;
pub mod guard;
mod health;
pub mod http;
pub mod image;
pub mod mail;
mod notification;
mod pace;
mod proof;
pub mod resolve;
pub mod signature;
pub mod simulator;
pub mod smpp;
pub mod smsc;
mod texts;
pub mod upstream;
pub mod url_check;

pub use self::http::{HttpCarrier, HttpReports, HttpSettings};
pub use absent_carrier::AbsentCarrier;
pub use api_client::{ApiClient, NoAnswer};
pub use callback::{CallbackClient, CallbackOptions};
pub use client_document::{DocumentFetch, DocumentOptions};
pub use dial::{Dialer, DialerOptions, HttpProxy};
pub use guard::{Forbidden, Guard};
pub use image::{ImageCheck, ImageOptions};
pub use notification::Notifier;
pub use resolve::{DnsOptions, DnsResolver, Resolve, SharedLookups, SystemResolver};
pub use simulator::Simulator;
pub use smpp::{SmppCarrier, SmppSettings};
pub use smsc::{Smsc, SmscSettings};
pub use upstream::{Upstream, UpstreamReports, UpstreamSettings};
pub use url_check::UrlCheck;
