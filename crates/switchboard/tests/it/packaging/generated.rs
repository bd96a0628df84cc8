//! The man pages, the completions and the unit.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{TempDir, temp_dir};

use crate::rest::service::binary;

fn generate() -> TempDir {
    let folder = temp_dir("generated").expect("a temporary folder");
    let status = Command::new(binary())
        .arg("generate")
        .arg(folder.path())
        .current_dir(folder.path())
        .status();
    assert!(status.expect("it runs").success());
    folder
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_command_has_a_man_page() {
    let folder = generate();
    let man = folder.path().join("man");
    for (page, contains) in [
        ("switchboard.1", "messaging service"),
        ("switchboard-serve.1", "roles"),
        ("switchboard-token-create.1", "permission"),
        ("switchboard-health.1", "ready"),
    ] {
        let text = read(&man.join(page));
        assert!(text.contains(".TH "), "{page}: {text}");
        assert!(text.contains(contains), "{page}: {text}");
    }
    assert!(
        !man.join("switchboard-generate.1").exists(),
        "only packages need it"
    );
}

#[test]
fn the_shells_complete_every_command() {
    let folder = generate();
    let completions = folder.path().join("completions");
    for name in ["switchboard.bash", "_switchboard", "switchboard.fish"] {
        let text = read(&completions.join(name));
        for word in ["serve", "health", "data-dir", "revoke"] {
            assert!(text.contains(word), "{name} lacks {word}");
        }
    }
    let checked = Command::new("bash")
        .arg("-n")
        .arg(completions.join("switchboard.bash"))
        .status();
    assert!(checked.expect("bash").success());
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// The unit in a root where its program is installed. `None` on machines without systemd.
fn analyze(arguments: &[&str]) -> Option<String> {
    let root = temp_dir("unit").expect("a temporary folder");
    let unit = root.path().join("switchboard.service");
    let text = read(&packaging().join("debian/switchboard.service"));
    let program = root.path().join("switchboard");
    symlink(binary(), &program).expect("a link");
    let text = text
        .replace("/usr/bin/switchboard", program.to_str().expect("UTF-8"))
        // The manual is not installed here.
        .replace("Documentation=man:switchboard(1)\n", "");
    fs::write(&unit, text).expect("written");
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(&unit);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    Some(text.into_owned())
}

#[test]
fn systemd_accepts_the_unit() {
    let Some(said) = analyze(&["verify", "--man=no"]) else {
        return;
    };
    assert!(!said.contains("switchboard.service"), "{said}");
    analyze(&["security", "--offline=true", "--threshold=20"]);
}
