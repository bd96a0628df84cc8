use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::outgoing::Unanswered;

/// More than a session ever waits for at once, over its life.
#[tokio::test(start_paused = true)]
async fn deliveries_that_are_never_answered_leave_the_window() {
    let (outgoing, mut incoming) = mpsc::channel(MAX_UNANSWERED);
    let (_sender, user) = watch::channel(None);
    let session = Receiver {
        id: 1,
        user,
        outgoing,
        window: Semaphore::new(MAX_UNANSWERED),
    };
    let mut unanswered = Unanswered::default();
    for sequence in 0..150 {
        let attempt = timeout(ANSWER_TIME, session.hand_over(ShortMessage::default()));
        let (answer, outgoing) = tokio::join!(attempt, timeout(ANSWER_TIME, incoming.recv()));
        assert!(answer.is_err(), "nobody answers");
        let outgoing = outgoing.expect("the window has room").expect("open");
        unanswered.insert(sequence, outgoing.answered);
    }
    assert_eq!(session.window.available_permits(), MAX_UNANSWERED);
    unanswered.drop_expired();
    assert_eq!(unanswered.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_its_attempt() {
    let mut unanswered = Unanswered::default();
    let (answered, answer) = Answered::channel();
    unanswered.insert(7, answered);
    unanswered.insert(8, Answered::channel().0);
    unanswered.insert(9, Answered::channel().0);
    assert_eq!(unanswered.len(), 2, "the second had given up");
    let answered = unanswered.take(7).expect("it waits");
    answered.answer(Answer::Status(Status::OK));
    assert!(matches!(answer.await, Ok(Answer::Status(Status::OK))));
    assert!(unanswered.take(7).is_none());
}
