//! A disk that fails on command: a small library that is preloaded into the service.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Backend, ServerBuilder, TempDir, temp_dir};

use super::test_service::builder;

const SOURCE: &str = include_str!("disk.c");

/// Each fault lasts while its file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskFault {
    /// Every sync fails.
    SyncFails,
    /// Only the next sync fails. This is how the kernel reports a lost write.
    SyncFailsOnce,
    /// A sync blocks until the fault ends.
    SyncHangs,
    /// Nothing can be written.
    DiskIsFull,
}

/// The library, and the folder whose files control it.
pub(super) struct FaultyDisk {
    folder: TempDir,
}

impl FaultyDisk {
    pub(super) fn new() -> Self {
        let folder = temp_dir("disk").expect("a temporary folder");
        let disk = Self { folder };
        compile(SOURCE, &disk.library());
        disk
    }

    /// A service on this disk.
    pub(super) fn server(&self) -> ServerBuilder {
        self.configure(builder(Backend::Sqlite))
    }

    /// Lets a service use this disk.
    pub(super) fn configure(&self, server: ServerBuilder) -> ServerBuilder {
        server
            .env("LD_PRELOAD", self.library().to_str().expect("a plain path"))
            .env(
                "FAULT_FOLDER",
                self.folder.path().to_str().expect("a plain path"),
            )
    }

    pub(super) fn begin(&self, fault: DiskFault) {
        fs::write(self.file(fault), "").expect("the folder can be written");
    }

    pub(super) fn end(&self, fault: DiskFault) {
        fs::remove_file(self.file(fault)).expect("it had begun");
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libdisk.so")
    }

    fn file(&self, fault: DiskFault) -> PathBuf {
        self.folder.path().join(match fault {
            DiskFault::SyncFails => "sync-fails",
            DiskFault::SyncFailsOnce => "sync-fails-once",
            DiskFault::SyncHangs => "sync-hangs",
            DiskFault::DiskIsFull => "disk-is-full",
        })
    }
}

/// Compiles C code to a library that can be preloaded.
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
