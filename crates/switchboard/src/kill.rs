//! The end of the process at a named place, for fault tests of debug builds. A release build has nothing of this file.

use std::process::abort;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use domain::kill_point::{KillPoint, set_hook};

/// Names the place and the pass at which the process ends: `accept.committed:3`.
const VARIABLE: &str = "SWITCHBOARD_KILL_AT";

static ORDERED: OnceLock<Ordered> = OnceLock::new();

struct Ordered {
    at: KillPoint,
    left: AtomicU64,
}

/// Does as the variable says, if it is set.
pub(crate) fn arm() {
    let Ok(order) = std::env::var(VARIABLE) else {
        return;
    };
    ORDERED.get_or_init(|| read(&order).unwrap_or_else(|error| panic!("{VARIABLE}: {error:#}")));
    set_hook(pass);
}

fn read(order: &str) -> anyhow::Result<Ordered> {
    let (name, pass) = order.split_once(':').unwrap_or((order, "1"));
    let mut points = KillPoint::ALL.iter().copied();
    let at = points.find(|point| point.name() == name);
    Ok(Ordered {
        at: at.context("no place has this name")?,
        left: AtomicU64::new(pass.parse().context("not a number of passes")?),
    })
}

/// No unwinding, no handlers, nothing flushed: as a crash would be.
fn pass(point: KillPoint) {
    let Some(ordered) = ORDERED.get().filter(|ordered| ordered.at == point) else {
        return;
    };
    if ordered.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        eprintln!("killed at {}", point.name());
        abort();
    }
}
