//! The disk fails under `SQLite`.

use std::fs;
use std::sync::Arc;

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::Ledger;
use super::shim::{Disk, Trouble};
use super::subject::{Shape, Subject};
use super::waiting::wait_until;
use super::way::{Bounds, WINDOW, Way};

const CALLERS: usize = 32;

#[test]
fn a_failed_sync_ends_the_service_and_acknowledges_nothing() {
    for trouble in [Trouble::SyncFails, Trouble::SyncFailsOnce] {
        let disk = Disk::new();
        let mut subject = Subject::from(disk.server());
        let ledger: Arc<Ledger> = Arc::default();
        let crowd = Crowd::enter(&subject.sender(Shape::Plain), CALLERS, &ledger);
        ledger.wait_for_accepted(1000);
        disk.begin(trouble);
        if trouble == Trouble::SyncFails {
            ledger.trouble_has_begun();
        }
        let status = subject.wait_for_its_end();
        crowd.wait();
        assert_eq!(status.code(), Some(1), "{trouble:?}");
        assert!(!ledger.entries().refused.is_empty(), "{trouble:?}: no 503");
        wait_until("it said why", || {
            subject
                .server
                .output()
                .contains("could not make a write durable; nothing more is accepted")
        });
        // Only the log can be trusted: it must not be copied into the file and thrown away.
        let log = fs::metadata(subject.server.data_dir().join("switchboard.db-wal"));
        assert!(log.is_ok_and(|log| log.len() > 0), "{trouble:?}: no log");

        if trouble == Trouble::SyncFails {
            ledger.trouble_ends();
            disk.end(trouble);
        }
        subject.server.restart();
        ledger.check(&subject, &mut Dice::throw());
        assert_eq!(subject.readiness(), 200, "{trouble:?}");
    }
}

#[test]
fn a_full_disk_refuses_until_there_is_room() {
    let disk = Disk::new();
    let mut subject = Subject::from(disk.server());
    let ledger: Arc<Ledger> = Arc::default();
    let crowd = Crowd::enter(&subject.sender(Shape::Plain), CALLERS, &ledger);
    for _ in 0..2 {
        ledger.wait_for_accepted(1000);
        disk.begin(Trouble::DiskIsFull);
        ledger.trouble_has_begun();
        let goal = ledger.entries().refused.len() + 200;
        ledger.wait_until("callers are refused", |entries| {
            entries.refused.len() >= goal
        });
        wait_until("it is not ready", || subject.readiness() == 503);
        ledger.trouble_ends();
        disk.end(Trouble::DiskIsFull);
        ledger.wait_for_accepted(1000);
        wait_until("it is ready again", || subject.readiness() == 200);
    }
    crowd.leave();
    assert_eq!(ledger.entries().unanswered, Vec::<u64>::new());
    ledger.check(&subject, &mut Dice::throw());
    subject.server.kill9();
    subject.server.restart();
    ledger.check(&subject, &mut Dice::throw());
}

/// While nothing can be stored, nothing ends; once there is room everything does, without a restart. What the network
/// answered meanwhile was kept, so nothing is sent again.
#[test]
fn a_full_disk_delays_and_loses_nothing_on_the_way() {
    let disk = Disk::new();
    let way = Way::from(disk.server());
    let crowd = way.crowd(CALLERS);
    for _ in 0..2 {
        way.wait_for_answered(500);
        disk.begin(Trouble::DiskIsFull);
        let goal = way.refused() + 200;
        wait_until("callers are refused", || way.refused() >= goal);
        disk.end(Trouble::DiskIsFull);
    }
    way.wait_for_answered(500);
    crowd.leave();
    way.check(Bounds::default());
}

/// The first write that cannot be made durable ends the service, whoever made it: here the network's answers and reports.
#[test]
fn a_failed_sync_ends_a_service_that_nobody_calls() {
    let disk = Disk::new();
    let mut way = Way::from(disk.server());
    let crowd = way.crowd(CALLERS);
    way.wait_for_answered(500);
    crowd.leave();
    disk.begin(Trouble::SyncFails);
    let status = way.subject.wait_for_its_end();
    assert_eq!(status.code(), Some(1), "{}", way.subject.server.output());
    disk.end(Trouble::SyncFails);
    way.restart();
    way.check(Bounds {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}

/// An operator whose disk is full can stop the service.
#[test]
fn a_service_that_cannot_store_stops_all_the_same() {
    let disk = Disk::new();
    let server = disk
        .server()
        .env("SWITCHBOARD_LIMITS__SHUTDOWN_SECONDS", "2");
    let mut way = Way::from(server);
    let crowd = way.crowd(CALLERS);
    way.wait_for_answered(500);
    disk.begin(Trouble::DiskIsFull);
    let goal = way.refused() + 50;
    wait_until("callers are refused", || way.refused() >= goal);
    way.subject.server.terminate();
    crowd.wait();
    disk.end(Trouble::DiskIsFull);
    way.restart();
    way.check(Bounds {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}
