//! Builds the packages of the client libraries and installs them, so that the tests use what users would install.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{TempDir, temp_dir};

use super::FOLDER;
use crate::mcp::clients::{node, python_program};

pub(super) const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/openapi.json");

/// An installed library, with its tests and its README in one folder.
pub(super) struct Installed {
    folder: TempDir,
}

impl Installed {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    /// `language` is the name of the library's folder.
    fn new(language: &str) -> Self {
        let folder = temp_dir("clients").expect("a folder");
        let installed = Self { folder };
        let (source, app) = (Path::new(FOLDER).join(language), installed.path());
        copy_files(&source.join("tests"), &app.join("tests"));
        let documents = [
            source.join("README.md"),
            Path::new(FOLDER).join("callbacks.json"),
            Path::new(FOLDER).join("types.json"),
            DOCUMENT.into(),
        ];
        for file in documents {
            let name = file.file_name().expect("a name");
            fs::copy(&file, app.join(name))
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        installed
    }

    pub(super) fn typescript() -> Self {
        let installed = Self::new("typescript");
        let (folder, app) = (installed.folder.path(), installed.path());
        let source = Path::new(FOLDER).join("typescript");
        // Node.js looks for packages in the folders above, too.
        let packages = source.join("tests/node_modules");
        symlink(packages, folder.join("node_modules")).expect("a link");
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", "--pack-destination"])
            .arg(folder)
            .arg(&source);
        let package = folder.join(run(&mut pack).trim());
        fs::write(app.join("package.json"), r#"{"private": true}"#).expect("a file");
        let mut install = Command::new("npm");
        install
            .args(["install", "--offline", "--no-audit", "--no-fund"])
            .arg(package)
            .current_dir(&app);
        run(&mut install);
        installed
    }

    pub(super) fn python() -> Self {
        let installed = Self::new("python");
        let folder = installed.folder.path();
        // The build writes into the folder of the source.
        let (from, source) = (Path::new(FOLDER).join("python"), folder.join("source"));
        let package = "src/switchboard_client";
        copy_files(&from, &source);
        copy_files(&from.join(package), &source.join(package));
        let pip = |arguments: &[&str]| {
            let mut pip = Command::new(python_program());
            pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"])
                .args(arguments)
                .args(["--no-deps", "--no-index"])
                .current_dir(folder);
            run(&mut pip);
        };
        pip(&["wheel", "--no-build-isolation", "./source"]);
        let files = fs::read_dir(folder).expect("a folder");
        let wheel = files
            .map(|file| file.expect("a file").path())
            .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
            .expect("a wheel");
        let wheel = wheel.to_str().expect("text");
        pip(&["install", "--target", "app/lib", wheel]);
        installed
    }

    /// Node.js, which finds the library.
    pub(super) fn node(&self) -> Command {
        let mut node = node();
        node.current_dir(self.path());
        node
    }

    /// Python, which finds the library.
    pub(super) fn python_program(&self) -> Command {
        let mut python = Command::new(python_program());
        python
            .current_dir(self.path())
            .env("PYTHONPATH", "lib")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let file = file.expect("a file");
        if file.file_type().expect("a type").is_file() {
            fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
        }
    }
}

/// Runs a command that must succeed, and returns its standard output.
pub(super) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{text}{log}");
    text
}
