//! Signals to a process.

use std::process::Command;

/// The shell's own `kill`, since the standard library only knows SIGKILL.
pub(crate) fn send(name: &str, pid: u32) {
    let signal = format!("kill -{name} {pid}");
    let sent = Command::new("sh").args(["-c", &signal]).status();
    assert!(sent.expect("a shell").success(), "{signal}");
}
