//! The program from outside: the real binary, its sockets and its command line, one file for each subject.
//!
//! A case that depends on the store takes a backend, and a macro makes two tests of it, called `sqlite::case` and
//! `postgres::case`. Every test has its own server and database.

pub(crate) mod service;

/// Makes two tests of each case that takes a backend.
macro_rules! on_both_backends {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $case() {
                super::$case(testkit::Backend::Sqlite);
            })+
        }

        mod postgres {
            $(#[test]
            fn $case() {
                super::$case(testkit::Backend::Postgres);
            })+
        }
    };
}

pub(crate) use on_both_backends;

mod accepting;
mod answers;
mod bad_http;
mod bad_json;
mod command_line;
mod correction;
mod document;
mod examples;
mod first_start;
mod half_sent;
mod hlr;
mod idempotency;
mod inbox;
mod isolation;
mod landing;
mod listing;
mod money;
mod mutations;
mod never_reading;
mod observing;
mod opt_outs;
mod permissions;
mod rate_limits;
mod rates;
mod reading;
mod reference_data;
mod refusing;
mod schemathesis;
mod secrecy;
mod security_headers;
mod sender_rules;
mod senders;
mod stop_words;
pub(crate) mod tls;
mod tokens;
mod unread;
mod verify;
mod viber;
