//! The end of the process, or a panic, at a named place, for fault tests of debug builds. A release build has nothing of this
//! file.

use std::path::PathBuf;
use std::process::abort;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use domain::kill_point::{KillPoint, set_hook};

/// Names the place and the pass at which the process ends: `accept.committed:3`.
const KILL: &str = "SWITCHBOARD_KILL_AT";
/// Names a place and a file: a task that passes the place panics while the file exists. `claim.committed:/tmp/panic`.
const PANIC: &str = "SWITCHBOARD_PANIC_AT";

static ORDERED: OnceLock<Ordered> = OnceLock::new();

struct Ordered {
    at: KillPoint,
    fault: Fault,
}

enum Fault {
    /// The process ends when so many passes are left.
    Kill(AtomicU64),
    /// A panic, while this file exists.
    Panic(PathBuf),
}

/// Does as the variables say, if one is set.
pub(crate) fn arm() {
    for (variable, read) in [(KILL, read_kill as fn(&str) -> _), (PANIC, read_panic)] {
        if let Ok(order) = std::env::var(variable) {
            let ordered = read(&order).unwrap_or_else(|error| panic!("{variable}: {error:#}"));
            ORDERED.get_or_init(|| ordered);
            set_hook(pass);
        }
    }
}

fn read_kill(order: &str) -> anyhow::Result<Ordered> {
    let (name, pass) = order.split_once(':').unwrap_or((order, "1"));
    let passes = pass.parse().context("not a number of passes")?;
    Ok(Ordered {
        at: place(name)?,
        fault: Fault::Kill(AtomicU64::new(passes)),
    })
}

fn read_panic(order: &str) -> anyhow::Result<Ordered> {
    let (name, file) = order.split_once(':').context("no file is named")?;
    Ok(Ordered {
        at: place(name)?,
        fault: Fault::Panic(file.into()),
    })
}

fn place(name: &str) -> anyhow::Result<KillPoint> {
    let mut points = KillPoint::ALL.iter().copied();
    let at = points.find(|point| point.name() == name);
    at.context("no place has this name")
}

fn pass(point: KillPoint) {
    let Some(ordered) = ORDERED.get().filter(|ordered| ordered.at == point) else {
        return;
    };
    match &ordered.fault {
        Fault::Kill(left) => {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                eprintln!("killed at {}", point.name());
                // No unwinding, no handlers, nothing flushed: as a crash would be.
                abort();
            }
        }
        Fault::Panic(file) => assert!(!file.exists(), "panicked at {}", point.name()),
    }
}
