//! Clients that are silent: they are asked whether they are there, and given up if they do not answer.

use std::time::Duration;

use tokio::time::Instant;

/// After this much silence the client is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);
/// The session ends when this many questions stay unanswered.
const MAX_QUESTIONS: u32 = 2;

/// How long a client has been silent.
pub(super) struct Silence {
    /// The last sign of life, or our last question.
    since: Instant,
    questions: u32,
}

/// What a client's silence leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silent {
    /// Send `enquire_link`.
    Ask,
    /// Close the connection.
    GiveUp,
}

impl Silence {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            questions: 0,
        }
    }

    /// The client has sent something.
    pub(super) fn interrupt(&mut self) {
        *self = Self::new();
    }

    /// Nothing is read at present, so the client only seems silent.
    pub(super) fn postpone(&mut self) {
        self.since = Instant::now();
    }

    /// When to call [`Self::end`], unless the client sends something before.
    pub(super) fn ends_at(&self) -> Instant {
        self.since + SILENCE
    }

    /// Call this after so much silence.
    pub(super) fn end(&mut self) -> Silent {
        if self.questions >= MAX_QUESTIONS {
            return Silent::GiveUp;
        }
        self.questions += 1;
        self.since = Instant::now();
        Silent::Ask
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep_until, timeout_at};

    use super::*;

    /// What happens next, and how many seconds after `began`.
    async fn next(silence: &mut Silence, began: Instant) -> (u64, Silent) {
        sleep_until(silence.ends_at()).await; // tidy: on the paused clock of the test
        (began.elapsed().as_secs(), silence.end())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_asked_twice_and_given_up() {
        let (mut silence, began) = (Silence::new(), Instant::now());
        for expected in [(30, Silent::Ask), (60, Silent::Ask), (90, Silent::GiveUp)] {
            assert_eq!(next(&mut silence, began).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_sign_of_life_starts_again() {
        let (mut silence, began) = (Silence::new(), Instant::now());
        assert_eq!(next(&mut silence, began).await, (30, Silent::Ask));
        assert_eq!(next(&mut silence, began).await, (60, Silent::Ask));
        let answer = Instant::now() + Duration::from_secs(29);
        let silent = timeout_at(answer, sleep_until(silence.ends_at())).await;
        assert!(silent.is_err(), "it answers in time");
        silence.interrupt();
        for expected in [
            (119, Silent::Ask),
            (149, Silent::Ask),
            (179, Silent::GiveUp),
        ] {
            assert_eq!(next(&mut silence, began).await, expected);
        }
    }

    /// The questions that it left unanswered still count.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_not_read_is_not_silent() {
        let (mut silence, began) = (Silence::new(), Instant::now());
        assert_eq!(next(&mut silence, began).await, (30, Silent::Ask));
        for _ in 0..5 {
            sleep_until(silence.ends_at()).await; // tidy: on the paused clock of the test
            silence.postpone();
        }
        assert_eq!(next(&mut silence, began).await, (210, Silent::Ask));
        assert_eq!(next(&mut silence, began).await, (240, Silent::GiveUp));
    }
}
