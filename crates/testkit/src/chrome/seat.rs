//! How many browsers run at once: as many as there are processors, over all test processes of the machine.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use std::{env, io};

/// A full run of the tests has many that wait.
const DEADLINE: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(50);

/// The right to run one browser: a locked file. The system unlocks it, however the process ends.
#[derive(Debug)]
pub(super) struct Seat {
    _locked: File,
}

impl Seat {
    /// Waits until one is free.
    pub(super) async fn take() -> Self {
        let until = Instant::now() + DEADLINE;
        let seats = available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
        loop {
            if let Some(seat) = (0..seats).find_map(Self::try_take) {
                return seat;
            }
            assert!(
                Instant::now() < until,
                "no browser could be started for {DEADLINE:?}: {seats} others run"
            );
            tokio::time::sleep(POLL).await;
        }
    }

    fn try_take(number: usize) -> Option<Self> {
        let path = env::temp_dir().join(format!("switchboard_chromium_{number}.lock"));
        let file = open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.try_lock().is_ok().then_some(Self { _locked: file })
    }
}

/// One that another account made may be read, which is enough to lock it.
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
