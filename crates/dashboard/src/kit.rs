//! What the pages share.

pub(crate) mod alerts;
pub(crate) mod assets;
pub(crate) mod browser;
pub(crate) mod chart;
pub(crate) mod confirm;
pub(crate) mod downloads;
pub(crate) mod failure;
pub(crate) mod form;
pub(crate) mod form_address;
pub(crate) mod form_input;
pub(crate) mod format;
pub(crate) mod live;
pub(crate) mod location;
pub(crate) mod navigation;
pub(crate) mod page;
pub(crate) mod password_field;
pub(crate) mod permissions;
pub(crate) mod qr;
pub(crate) mod query;
pub(crate) mod return_path;
pub(crate) mod session;
mod user_agent;
