//! Tells the service manager (systemd) when the service is ready, reloads, stops, and still works: the protocol of
//! `sd_notify`. Without a manager nothing is sent.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinHandle;

/// The socket of the manager: a path, or an abstract name that starts with `@`.
const SOCKET: &str = "NOTIFY_SOCKET";
/// The manager restarts the service if it hears nothing for this many microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process that the limit is for, if it is not for everyone who inherits the variables.
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// Signs of life in the time that the manager allows, so that one may be missing while a task is restarted.
const SIGNS_OF_LIFE: u32 = 4;
/// The longest wait for a manager that reads nothing.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// The program that started this process and follows its state.
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Finds the manager by the environment.
    pub(crate) fn find() -> Arc<Self> {
        let socket = env::var_os(SOCKET).and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, "the service manager cannot be told anything ({SOCKET})");
                None
            }
        });
        let variable = |name| env::var(name).ok();
        let watchdog = watchdog_time(variable(WATCHDOG), variable(WATCHDOG_PID));
        Arc::new(Self { socket, watchdog })
    }

    /// The service accepts requests, or has finished to reload.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The service reads its configuration again.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping");
    }

    /// Gives signs of life while all background tasks run. A process that is stuck gives none, nor does one with a task
    /// that panics again and again; the manager then restarts it.
    pub(crate) fn start_watchdog(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        self.socket.as_ref()?;
        let mut tick = tokio::time::interval(self.watchdog? / SIGNS_OF_LIFE);
        let manager = self.clone();
        Some(tokio::spawn(async move {
            let mut panics_before = supervise::panics();
            loop {
                tick.tick().await;
                let panics = supervise::panics();
                if supervise::all_up() && panics == panics_before {
                    manager.tell("WATCHDOG=1");
                }
                panics_before = panics;
            }
        }))
    }

    fn tell(&self, state: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(state.as_bytes()) {
            tracing::warn!(%error, "the service manager could not be told the state of the service");
        }
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(WRITE_TIME))?;
    Ok(socket)
}

/// How long the service may be silent; `None` if the manager has no limit for this process.
fn watchdog_time(micros: Option<String>, pid: Option<String>) -> Option<Duration> {
    let is_for_us = pid.is_none_or(|pid| pid == std::process::id().to_string());
    let micros = micros.filter(|_| is_for_us)?.parse().ok()?;
    Some(Duration::from_micros(micros)).filter(|time| *time >= Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// How many signs of life arrive within a time.
    async fn signs_within(time: Duration, manager: &UnixDatagram) -> usize {
        tokio::time::sleep(time).await; // tidy: on a clock that jumps
        std::iter::from_fn(|| {
            let mut message = [0; 64];
            let length = manager.recv(&mut message).ok()?;
            assert_eq!(&message[..length], b"WATCHDOG=1");
            Some(())
        })
        .count()
    }

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_stop_while_a_task_panics_repeatedly() {
        let (ours, managers) = UnixDatagram::pair().expect("a pair");
        managers.set_nonblocking(true).expect("set");
        let manager = Arc::new(ServiceManager {
            socket: Some(ours),
            watchdog: Some(MINUTE),
        });
        let watchdog = manager.start_watchdog().expect("a watchdog");
        let signs = usize::try_from(SIGNS_OF_LIFE).expect("small");
        assert!(signs_within(MINUTE, &managers).await >= signs);

        for (case, seconds) in [("at once", 0), ("after a while", 5)] {
            let panicking = supervise::spawn("test", move || async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await; // tidy: on a clock that jumps
                panic!("on purpose");
            });
            signs_within(Duration::from_secs(10), &managers).await;
            assert_eq!(signs_within(5 * MINUTE, &managers).await, 0, "{case}");
            panicking.abort();
            assert!(signs_within(MINUTE, &managers).await >= signs - 1, "{case}");
        }
        watchdog.abort();
    }

    #[test]
    fn the_watchdog_is_for_this_process_only() {
        let own = std::process::id().to_string();
        for (case, micros, pid, expected) in [
            ("no limit", None, None, None),
            ("for everyone", Some("30000000"), None, Some(30)),
            ("for us", Some("30000000"), Some(own.as_str()), Some(30)),
            ("for another", Some("30000000"), Some("1"), None),
            ("nonsense", Some("soon"), None, None),
            ("zero", Some("0"), None, None),
        ] {
            let text = |value: Option<&str>| value.map(str::to_owned);
            let time = watchdog_time(text(micros), text(pid));
            assert_eq!(time, expected.map(Duration::from_secs), "{case}");
        }
    }
}
