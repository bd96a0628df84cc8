//! The commands for money, prices, reference data and numbers, from outside: what they print, what they refuse, and
//! what is in force afterwards.
//!
//! Where the store matters a case runs beside a service on both; the rest runs the program alone, in a folder of its own.

mod account;
mod numbers;
mod rates;
mod reference;
mod sender;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testkit::TempDir;

use crate::rest::service::{Service, binary};

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("commands print text");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// It did what it was asked for; returns what it printed.
    fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// [`Self::done`] for a command that prints JSON.
    fn json(self) -> Value {
        let out = self.done();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// It refused, and said all of this.
    fn refused(self, fragments: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        self.says(fragments);
    }

    /// It was called wrongly, and said all of this.
    fn misused(self, fragments: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        self.says(fragments);
    }

    fn says(&self, fragments: &[&str]) {
        for fragment in fragments {
            assert!(self.err.contains(fragment), "no {fragment:?}: {self:?}");
        }
        assert!(!self.err.contains("panicked"), "{self:?}");
    }
}

/// Runs a command beside a service.
fn run(service: &Service, arguments: &[&str]) -> Ran {
    Ran::new(service.server.cli(arguments))
}

/// A folder in which the program runs without a service.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = TempDir::create("desk").expect("a temporary folder");
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

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    /// [`Self::run`] with something on standard input.
    fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
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
        Ran::new(child.wait_with_output().expect("it ends"))
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
