//! The disk fails under `SQLite`.

use std::fs;
use std::sync::Arc;

use super::answer_log::AnswerLog;
use super::callers::Callers;
use super::end_to_end::{DuplicateLimits, EndToEndTest, WINDOW};
use super::faulty_disk::{DiskFault, FaultyDisk};
use super::rng::Rng;
use super::test_service::{RequestKind, TestService};
use super::waiting::wait_until;

const CALLERS: usize = 32;

#[test]
fn a_failed_sync_stops_the_service_and_acknowledges_nothing() {
    for fault in [DiskFault::SyncFails, DiskFault::SyncFailsOnce] {
        let disk = FaultyDisk::new();
        let mut service = TestService::from(disk.server());
        let answer_log: Arc<AnswerLog> = Arc::default();
        let callers = Callers::start(&service.sender(RequestKind::Plain), CALLERS, &answer_log);
        answer_log.wait_for_accepted(1000);
        disk.begin(fault);
        if fault == DiskFault::SyncFails {
            answer_log.storage_failed();
        }
        let status = service.wait_for_exit();
        callers.join();
        assert_eq!(status.code(), Some(1), "{fault:?}");
        assert!(
            !answer_log.entries().refused.is_empty(),
            "{fault:?}: no 503"
        );
        wait_until("the service logs the reason", || {
            service
                .server
                .output()
                .contains("could not make a write durable; nothing more is accepted")
        });
        // Only the write-ahead log can be trusted, so no checkpoint may have emptied it.
        let wal = fs::metadata(service.server.data_dir().join("switchboard.db-wal"));
        assert!(
            wal.is_ok_and(|wal| wal.len() > 0),
            "{fault:?}: no write-ahead log"
        );

        if fault == DiskFault::SyncFails {
            answer_log.storage_recovers();
            disk.end(fault);
        }
        service.server.restart();
        answer_log.check(&service, &mut Rng::seeded());
        assert_eq!(service.ready_status(), 200, "{fault:?}");
    }
}

#[test]
fn a_full_disk_refuses_until_there_is_space() {
    let disk = FaultyDisk::new();
    let mut service = TestService::from(disk.server());
    let answer_log: Arc<AnswerLog> = Arc::default();
    let callers = Callers::start(&service.sender(RequestKind::Plain), CALLERS, &answer_log);
    for _ in 0..2 {
        answer_log.wait_for_accepted(1000);
        disk.begin(DiskFault::DiskIsFull);
        answer_log.storage_failed();
        let goal = answer_log.entries().refused.len() + 200;
        answer_log.wait_until("callers are refused", |entries| {
            entries.refused.len() >= goal
        });
        wait_until("the service is not ready", || service.ready_status() == 503);
        answer_log.storage_recovers();
        disk.end(DiskFault::DiskIsFull);
        answer_log.wait_for_accepted(1000);
        wait_until("the service is ready again", || {
            service.ready_status() == 200
        });
    }
    callers.stop();
    assert_eq!(answer_log.entries().unanswered, Vec::<u64>::new());
    answer_log.check(&service, &mut Rng::seeded());
    service.server.kill9();
    service.server.restart();
    answer_log.check(&service, &mut Rng::seeded());
}

/// While nothing can be stored, no message ends; once there is space all of them do, without a restart. The service
/// keeps the answers of the network meanwhile, so nothing is sent again.
#[test]
fn a_full_disk_delays_messages_and_loses_none() {
    let disk = FaultyDisk::new();
    let test = EndToEndTest::from(disk.server());
    let callers = test.callers(CALLERS);
    for _ in 0..2 {
        test.wait_for_answered(500);
        disk.begin(DiskFault::DiskIsFull);
        let goal = test.refused() + 200;
        wait_until("callers are refused", || test.refused() >= goal);
        disk.end(DiskFault::DiskIsFull);
    }
    test.wait_for_answered(500);
    callers.stop();
    test.check(DuplicateLimits::default());
}

/// Any write that cannot be made durable stops the service, also when no caller caused it. Here the writes are answers
/// of the network and delivery reports.
#[test]
fn a_failed_sync_stops_a_service_without_callers() {
    let disk = FaultyDisk::new();
    let mut test = EndToEndTest::from(disk.server());
    let callers = test.callers(CALLERS);
    test.wait_for_answered(500);
    callers.stop();
    disk.begin(DiskFault::SyncFails);
    let status = test.service.wait_for_exit();
    assert_eq!(status.code(), Some(1), "{}", test.service.server.output());
    disk.end(DiskFault::SyncFails);
    test.restart();
    test.check(DuplicateLimits {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}

#[test]
fn a_service_with_a_full_disk_can_be_stopped() {
    let disk = FaultyDisk::new();
    let server = disk
        .server()
        .env("SWITCHBOARD_LIMITS__SHUTDOWN_SECONDS", "2");
    let mut test = EndToEndTest::from(server);
    let callers = test.callers(CALLERS);
    test.wait_for_answered(500);
    disk.begin(DiskFault::DiskIsFull);
    let goal = test.refused() + 50;
    wait_until("callers are refused", || test.refused() >= goal);
    test.service.server.terminate();
    callers.join();
    disk.end(DiskFault::DiskIsFull);
    test.restart();
    test.check(DuplicateLimits {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}
