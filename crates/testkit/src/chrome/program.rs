//! The process of chromium.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::temp_dir::{TempDir, temp_dir};

/// Chromium uses the descriptors 3 and 4, but the standard library passes only 0 to 2. `exec` keeps the process ID.
const WITH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// Only the pages under test: no first-run pages, no background requests, no other hosts.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Tests may run as root and in containers, where the sandbox does not work. The pages are our own.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    // Pages in the background run as if they were in front.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    // Going back loads the page again, so waiting works the same as for going forward.
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

/// The process and its profile. Both are removed on drop.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    home: TempDir,
}

impl Program {
    /// Starts it. It reads commands from the first pipe and writes answers to the second.
    pub(super) fn start() -> (Self, ChildStdin, ChildStdout) {
        let home = temp_dir("chromium").expect("a temporary folder");
        let output = File::create(home.path().join("output")).expect("a file in a new folder");
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
            .stderr(output)
            // A group, so that its child processes can be killed with it.
            .process_group(0);
        let mut child = command.spawn().expect("a shell starts");
        let input = child.stdin.take().expect("piped");
        let output = child.stdout.take().expect("piped");
        (Self { child, home }, input, output)
    }

    /// Its error output.
    pub(super) fn output(&self) -> String {
        let path: PathBuf = self.home.path().join("output");
        let output = fs::read(path).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        if output.contains("chromium: not found") {
            return format!("{output}\nInstall it: scripts/chromium");
        }
        output.into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The standard library can only kill one process, so the shell kills the group.
        let group = format!("kill -s KILL -- -{}", self.child.id());
        let ended = Command::new("sh").args(["-c", &group]).output();
        if !ended.as_ref().is_ok_and(|ended| ended.status.success()) {
            eprintln!("`{group}`: {ended:?}");
        }
        // Errors mean that it has already ended.
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}
