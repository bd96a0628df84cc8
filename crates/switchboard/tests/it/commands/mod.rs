//! The commands for money, prices, reference data and numbers, from outside: what they print, refuse and change.
//!
//! Where the store matters, a case runs next to a service on both stores. The rest runs the program alone, in its own
//! folder.

mod account;
mod export;
mod numbers;
mod rates;
mod reference;
mod sender;
mod smpp_user;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testkit::{TempDir, temp_dir};

use crate::rest::service::{Service, binary};

/// The exit code and output of a command.
#[derive(Debug)]
struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl CommandOutput {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("commands print text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Checks that the command succeeded, and returns its output.
    fn assert_success(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// [`Self::assert_success`] for a command that prints JSON.
    fn json(self) -> Value {
        let out = self.assert_success();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Checks that the command was refused, with all of this on standard error.
    fn assert_refused(self, fragments: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        self.assert_stderr_contains(fragments);
    }

    /// Checks that the arguments were refused, with all of this on standard error.
    fn assert_usage_error(self, fragments: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        self.assert_stderr_contains(fragments);
    }

    fn assert_stderr_contains(&self, fragments: &[&str]) {
        for fragment in fragments {
            assert!(self.stderr.contains(fragment), "no {fragment:?}: {self:?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:?}");
    }
}

/// Runs a command next to a service.
fn run(service: &Service, arguments: &[&str]) -> CommandOutput {
    CommandOutput::new(service.server.cli(arguments))
}

/// A folder in which the program runs without a service.
struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new() -> Self {
        let folder = temp_dir("workspace").expect("a temporary folder");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        write(&self.path(name), text)
    }

    fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with_input(arguments, "")
    }

    /// [`Self::run`] with something on standard input.
    fn run_with_input(&self, arguments: &[&str], input: &str) -> CommandOutput {
        let mut child = Command::new(binary())
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut stdin = child.stdin.take().expect("piped");
        // A command that does not read may have ended already.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        CommandOutput::new(child.wait_with_output().expect("it ends"))
    }
}

fn write(path: &Path, text: &str) -> String {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(path, text).expect("written");
    path.to_str().expect("a plain path").to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
