//! `switchboard numbers …`

mod bulk;
mod columns;
mod lookup;
mod summary;

pub(super) use bulk::correct;
pub(super) use lookup::lookup;
