//! Backups of a running service, and what a restore brings back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use testkit::{Backend, TestDatabase, temp_dir};

use super::{file_url, json as printed, start_on};
use crate::rest::service::{Service, ids, sms, wait_for};

crate::rest::on_both_backends!(a_backup_of_a_busy_service_is_restored_into_both_databases);

fn a_backup_of_a_busy_service_is_restored_into_both_databases(backend: Backend) {
    let service = Service::start(backend);
    let folder = temp_dir("backups").expect("a folder");
    let file = folder.path().join("backup.db");
    let file_name = file.to_str().expect("a plain path").to_owned();
    let is_over = AtomicBool::new(false);
    let answered = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut answered = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let answer = service.send(&sms());
                // The balance may run out first.
                if answer.status == 200 {
                    answered.extend(ids(&answer));
                }
            }
            answered
        });
        wait_for("some messages", || (service.stored() > 50).then_some(()));
        let before = service.accept(&sms()).remove(0);
        let backup = service
            .server
            .cli(&["backup", "--to", &file_name, "--json"]);
        is_over.store(true, Ordering::Relaxed);
        let answered = sending.join().expect("no panic");
        assert!(printed(&backup)["bytes"].as_u64() > Some(0));
        let sent_before = |id: &String| id.parse::<u64>().ok() <= before.parse().ok();
        let mut expected: Vec<String> = answered.into_iter().filter(sent_before).collect();
        expected.push(before);
        expected
    });
    assert!(answered.len() > 50);
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let server = TestDatabase::create_blocking();
    let urls = [
        file_url(&folder.path().join("restored/switchboard.db")),
        server.url().to_owned(),
    ];
    for url in urls {
        let restore = ["restore", "--from", &file_name, "--json"];
        let restored = restore_into(folder.path(), &url, &restore);
        assert!(restored["checked"].as_array().is_some(), "{restored}");
        let restored_service = start_on(&url, &service.token);
        for id in &answered {
            let status = restored_service.get(&format!("/sms/status/{id}"));
            assert_eq!(status.status, 200, "{id}: {}", status.text());
        }
        let checked = restored_service.server.cli(&["account", "check"]);
        assert!(checked.status.success(), "{checked:?}");
        let new = restored_service.accept(&sms()).remove(0);
        assert!(!answered.contains(&new), "{new} was used again");
        restored_service.check_health();
    }
    assert_eq!(service.get("/token").json()["account"], json!("main"));
}

fn restore_into(folder: &Path, url: &str, arguments: &[&str]) -> serde_json::Value {
    let output = std::process::Command::new(crate::rest::service::binary())
        .args(arguments)
        .env(super::DATABASE, url)
        .current_dir(folder)
        .output();
    printed(&output.expect("it runs"))
}
