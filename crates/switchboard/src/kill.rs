//! Kills the process or panics at a named point, for fault tests of debug builds. A release build does not contain it.

use std::path::PathBuf;
use std::process::abort;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use domain::kill_point::{KillPoint, set_hook};

/// The point, and at which pass the process is killed: `accept.committed:3`.
const KILL: &str = "SWITCHBOARD_KILL_AT";
/// A point and a file: a task at the point panics while the file exists. `claim.committed:/tmp/panic`.
const PANIC: &str = "SWITCHBOARD_PANIC_AT";

static ARMED: OnceLock<ArmedFault> = OnceLock::new();

struct ArmedFault {
    at: KillPoint,
    fault: Fault,
}

enum Fault {
    /// Kill the process when this counter reaches 0.
    Kill(AtomicU64),
    /// Panic while this file exists.
    Panic(PathBuf),
}

/// Sets the fault that an environment variable names, if any.
pub(crate) fn arm() {
    for (variable, parse) in [(KILL, parse_kill as fn(&str) -> _), (PANIC, parse_panic)] {
        if let Ok(value) = std::env::var(variable) {
            let armed = parse(&value).unwrap_or_else(|error| panic!("{variable}: {error:#}"));
            ARMED.get_or_init(|| armed);
            set_hook(pass);
        }
    }
}

fn parse_kill(value: &str) -> anyhow::Result<ArmedFault> {
    let (name, pass) = value.split_once(':').unwrap_or((value, "1"));
    let passes = pass.parse().context("not a number of passes")?;
    Ok(ArmedFault {
        at: find_point(name)?,
        fault: Fault::Kill(AtomicU64::new(passes)),
    })
}

fn parse_panic(value: &str) -> anyhow::Result<ArmedFault> {
    let (name, file) = value.split_once(':').context("no file is named")?;
    Ok(ArmedFault {
        at: find_point(name)?,
        fault: Fault::Panic(file.into()),
    })
}

fn find_point(name: &str) -> anyhow::Result<KillPoint> {
    let mut points = KillPoint::ALL.iter().copied();
    let at = points.find(|point| point.name() == name);
    at.context("no kill point has this name")
}

fn pass(point: KillPoint) {
    let Some(armed) = ARMED.get().filter(|armed| armed.at == point) else {
        return;
    };
    match &armed.fault {
        Fault::Kill(left) => {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                eprintln!("killed at {}", point.name());
                // As in a crash: no unwinding, no handlers, nothing flushed.
                abort();
            }
        }
        Fault::Panic(file) => assert!(!file.exists(), "panicked at {}", point.name()),
    }
}
