//! Limits how many browsers run at once, over all test processes of the machine.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use std::{env, io};

/// Long, because many tests wait for a browser in a full run.
const DEADLINE: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(50);

/// The right to run one browser: a locked file. The system unlocks it even if the process is killed.
#[derive(Debug)]
pub(super) struct BrowserPermit {
    _locked: File,
}

impl BrowserPermit {
    /// Waits until a permit is free.
    pub(super) async fn acquire() -> Self {
        let until = Instant::now() + DEADLINE;
        let permits = available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
        loop {
            if let Some(permit) = (0..permits).find_map(Self::try_acquire) {
                return permit;
            }
            assert!(
                Instant::now() < until,
                "no browser could be started for {DEADLINE:?}: {permits} others run"
            );
            tokio::time::sleep(POLL).await;
        }
    }

    fn try_acquire(number: usize) -> Option<Self> {
        let path = env::temp_dir().join(format!("switchboard_chromium_{number}.lock"));
        let file = open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.try_lock().is_ok().then_some(Self { _locked: file })
    }
}

/// Read access is enough to lock a file, so another account may have created it.
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path),
        opened => opened,
    }
}
