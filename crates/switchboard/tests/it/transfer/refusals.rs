//! What the commands refuse, and their error messages.

use testkit::Backend;

use super::{file_url, text};
use crate::rest::service::Service;

#[test]
fn impossible_commands_are_refused_without_showing_a_password() {
    let service = Service::start(Backend::Sqlite);
    let folder = service.server.data_dir();
    let own = file_url(&folder.join("switchboard.db"));
    let missing = file_url(&folder.join("missing.db"));
    let backup = folder.join("backup.db").display().to_string();
    let made = service.server.cli(&["backup", "--to", &backup]);
    assert!(made.status.success(), "{made:?}");
    let cases: &[(&str, &[&str], i32, &str)] = &[
        ("no database named", &["migrate"], 2, "--from"),
        (
            "no source",
            &["migrate", "--from", &missing],
            1,
            "there is no database",
        ),
        (
            "the same",
            &["migrate", "--to", &own],
            1,
            "the same database",
        ),
        (
            "unknown kind of database",
            &["migrate", "--to", "mysql://u:hidden@db/x"],
            1,
            "must start with sqlite:",
        ),
        (
            "no such server",
            &["migrate", "--to", "postgres://u:hidden@127.0.0.1:1/x"],
            1,
            "cannot open the database postgres://127.0.0.1:1/x: error connecting to server: Connection refused",
        ),
        (
            "the file exists",
            &["backup", "--to", &backup],
            1,
            "--force",
        ),
        (
            "no folder",
            &["backup", "--to", "/nowhere/b.db"],
            1,
            "creating /nowhere/b.db",
        ),
        (
            "not empty",
            &["restore", "--from", &backup],
            1,
            "is not empty",
        ),
        (
            "no backup",
            &["restore", "--from", "nothing.db"],
            1,
            "there is no database",
        ),
        (
            "not moved",
            &["migrate", "--undo", "--to", &missing],
            1,
            "there is no database",
        ),
    ];
    for (name, arguments, code, reason) in cases {
        let output = service.server.cli(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{name}: {stderr}");
        assert!(stderr.contains(reason), "{name}: {stderr}");
        assert!(
            !stderr.contains("hidden") && !stderr.contains("panicked"),
            "{name}: {stderr}"
        );
    }
    let forced = service.server.cli(&["backup", "--to", &backup, "--force"]);
    assert!(forced.status.success(), "{forced:?}");
    service.check_health();
}
