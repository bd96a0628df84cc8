//! The program itself: its flags, its profile, its end.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::folder::TempDir;

/// The program speaks on the descriptors 3 and 4, and the standard library gives only 0 to 2. `exec` keeps the process.
const WITH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// Nothing but the pages under test: no first-run pages, no calls home, no other machine.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Tests may run as root and in containers, where its sandbox cannot be made. The pages are our own.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    // Pages that are not in front are to run as if they were.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    // Going back loads the page again, so that what is waited for is the same as going forward.
    "--disable-features=BackForwardCache,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--lang=en-GB",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-proxy-server",
    "--password-store=basic",
    "--use-mock-keychain",
];

/// The process and its profile; both go with this value.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    home: TempDir,
}

impl Program {
    /// Starts it; it reads orders from the one and writes answers to the other.
    pub(super) fn start() -> (Self, ChildStdin, ChildStdout) {
        let home = TempDir::create("chromium").expect("a temporary folder");
        let said = File::create(home.path().join("output")).expect("a file in a new folder");
        let mut command = Command::new("sh");
        command.args(["-c", WITH_PIPES, "sh", "chromium"]);
        command.args(FLAGS);
        let profile = home.path().join("profile");
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg("about:blank");
        command
            .env("XDG_CONFIG_HOME", home.path())
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            // It starts others, which are to end with it.
            .process_group(0);
        let mut child = command.spawn().expect("a shell");
        let input = child.stdin.take().expect("piped");
        let output = child.stdout.take().expect("piped");
        (Self { child, home }, input, output)
    }

    /// What it wrote for people.
    pub(super) fn output(&self) -> String {
        let path: PathBuf = self.home.path().join("output");
        let said = fs::read(path).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        if said.contains("chromium: not found") {
            return format!("{said}\nInstall it: scripts/chromium");
        }
        said.into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The shell's own `kill`, since the standard library ends only one process and not its children.
        let group = format!("kill -s KILL -- -{}", self.child.id());
        let ended = Command::new("sh").args(["-c", &group]).output();
        if !ended.as_ref().is_ok_and(|ended| ended.status.success()) {
            eprintln!("`{group}`: {ended:?}");
        }
        // Both fail only when it is already gone and waited for.
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}
