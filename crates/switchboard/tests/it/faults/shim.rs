//! A disk that fails on command: a small library, loaded into the service before all others.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Backend, ServerBuilder, TempDir};

use super::subject::builder;

const SOURCE: &str = include_str!("disk.c");

/// What can go wrong. Each has a file; while that exists, it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing can be made durable.
    SyncFails,
    /// The first try to make something durable fails, and only that: so the kernel reports a lost write.
    SyncFailsOnce,
    /// Making something durable takes until the trouble is over.
    SyncHangs,
    /// Nothing can be written.
    DiskIsFull,
}

/// The library, and the folder by which it is told what to do.
pub(super) struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Compiles the library.
    pub(super) fn new() -> Self {
        let folder = TempDir::create("disk").expect("a temporary folder");
        let disk = Self { folder };
        compile(SOURCE, &disk.library());
        disk
    }

    /// A service on this disk.
    pub(super) fn server(&self) -> ServerBuilder {
        self.equip(builder(Backend::Sqlite))
    }

    /// Puts a service on this disk.
    pub(super) fn equip(&self, server: ServerBuilder) -> ServerBuilder {
        server
            .env("LD_PRELOAD", self.library().to_str().expect("a plain path"))
            .env(
                "FAULT_FOLDER",
                self.folder.path().to_str().expect("a plain path"),
            )
    }

    pub(super) fn begin(&self, trouble: Trouble) {
        fs::write(self.file(trouble), "").expect("the folder can be written");
    }

    pub(super) fn end(&self, trouble: Trouble) {
        fs::remove_file(self.file(trouble)).expect("it had begun");
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libdisk.so")
    }

    fn file(&self, trouble: Trouble) -> PathBuf {
        self.folder.path().join(match trouble {
            Trouble::SyncFails => "sync-fails",
            Trouble::SyncFailsOnce => "sync-fails-once",
            Trouble::SyncHangs => "sync-hangs",
            Trouble::DiskIsFull => "disk-is-full",
        })
    }
}

/// Makes a library of C that can be loaded before all others.
pub(super) fn compile(source: &str, library: &Path) {
    let mut compiler = Command::new("cc")
        .args([
            "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-x", "c", "-", "-o",
        ])
        .arg(library)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler; the service's own build needs one too");
    let mut input = compiler.stdin.take().expect("a pipe");
    input.write_all(source.as_bytes()).expect("it reads");
    drop(input);
    let status = compiler.wait().expect("a child can be waited for");
    assert!(status.success(), "the library does not compile");
}
