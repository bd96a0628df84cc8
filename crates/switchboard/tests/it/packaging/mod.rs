//! What packages and containers rely on: the notifications to the service manager, the health check, the generated man
//! pages and completions, and the systemd unit. `scripts/test-packages` tests the packages themselves.

mod generated;
mod health;
mod notify;
