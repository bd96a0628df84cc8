//! Calculates from waiting times how long a test's processes were stalled in an interval.

use std::time::Duration;

/// Times that the kernel counted in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CpuUsage {
    /// Time on a processor, the sum over all threads of the test.
    pub(super) ran: Duration,
    /// Time that threads were ready to run and had no processor, the sum over all threads.
    pub(super) waited: Duration,
    /// The same for the threads that waited longest, one in each of three processes: a message passes through a node,
    /// the database and the test one after the other, and waits in each.
    pub(super) longest_waits: Duration,
    /// Time that the processors of this machine worked.
    pub(super) busy: Duration,
    /// Time that the hypervisor ran something else.
    pub(super) stolen: Duration,
}

/// The part of an interval in which the test was stalled.
///
/// Threads that got a share of the processor time they were ready for ran at that share of their speed, so the rest of
/// the interval counts as a stall. Threads that were mostly idle lost at most the sum of the longest waits.
pub(super) fn stall_in(length: Duration, overslept: Duration, usage: CpuUsage) -> Duration {
    let waiting = lost_share(length, usage.waited, usage.ran, usage.longest_waits);
    let stolen = lost_share(length, usage.stolen, usage.busy, usage.stolen);
    let running = (1.0 - waiting) * (1.0 - stolen);
    length.mul_f64(1.0 - running).max(overslept).min(length)
}

/// The lost share of the requested time, between 0 and 1, limited to `most` of the interval.
fn lost_share(length: Duration, lost: Duration, had: Duration, most: Duration) -> f64 {
    let (lost, had) = (lost.as_secs_f64(), had.as_secs_f64());
    if lost <= 0.0 || length.is_zero() {
        return 0.0;
    }
    (lost / (lost + had)).min(most.as_secs_f64() / length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{CpuUsage, stall_in};
    use std::time::Duration;

    #[test]
    fn a_stall_is_the_time_that_processes_could_not_use() {
        let ms = Duration::from_millis;
        // The delay of the timer; run, waited, longest wait; busy, stolen; expected stall, in an interval of 1000 ms.
        let cases = [
            ("idle", 0, (5, 0, 0), (5, 0), 0),
            ("busy and alone", 0, (1800, 0, 0), (1900, 0), 0),
            ("idle, and a little starved", 0, (10, 20, 20), (1900, 0), 20),
            ("many idle threads", 0, (100, 2000, 60), (1900, 0), 60),
            ("half the speed", 0, (900, 900, 900), (1900, 0), 500),
            ("a fifth of the speed", 0, (400, 1600, 900), (1900, 0), 800),
            ("the hypervisor took half", 0, (900, 0, 0), (900, 900), 500),
            ("both", 0, (450, 450, 450), (900, 900), 725),
            ("the machine was paused", 900, (5, 0, 0), (5, 0), 900),
            (
                "no more than passed",
                4000,
                (1, 9000, 9000),
                (1, 9000),
                1000,
            ),
        ];
        for (case, overslept, (ran, waited, longest), (busy, stolen), expected) in cases {
            let usage = CpuUsage {
                ran: ms(ran),
                waited: ms(waited),
                longest_waits: ms(longest),
                busy: ms(busy),
                stolen: ms(stolen),
            };
            let found = stall_in(ms(1000), ms(overslept), usage);
            assert_eq!(found.as_millis(), expected, "{case}");
        }
    }
}
