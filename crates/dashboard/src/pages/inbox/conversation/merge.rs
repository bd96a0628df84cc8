//! Puts sent and received messages in the order of their times.

use domain::ports::Page;
use domain::{MessageId, Timestamp};

/// A message of a conversation.
#[derive(Debug)]
pub(super) struct Dated<T> {
    pub(super) id: MessageId,
    pub(super) at: Timestamp,
    pub(super) shown: T,
}

/// One page of a conversation: messages, the newest last, and the ID before which the earlier page begins.
///
/// Both lists are read by ID, and each of them ends at its own. Messages are shown only as far back as both lists reach;
/// the earlier page begins there. So every message is on one page, even if IDs and times differ: each node takes IDs from
/// its own block.
pub(super) fn merge<T>(
    sent: Page<Dated<T>, MessageId>,
    received: Page<Dated<T>, MessageId>,
) -> (Vec<Dated<T>>, Option<MessageId>) {
    let reached = sent.next.max(received.next);
    let all = sent.rows.into_iter().chain(received.rows);
    let mut shown: Vec<_> = all
        .filter(|message| reached.is_none_or(|reached| message.id >= reached))
        .collect();
    shown.sort_by_key(|message| (message.at, message.id));
    (shown, reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: u64) -> MessageId {
        MessageId::new(id).expect("in range")
    }

    /// A page of messages: their IDs and seconds.
    fn page(rows: &[(u64, i64)], next: Option<u64>) -> Page<Dated<()>, MessageId> {
        let row = |&(number, second): &(u64, i64)| Dated {
            id: id(number),
            at: Timestamp::from_second(second).expect("in range"),
            shown: (),
        };
        Page {
            rows: rows.iter().map(row).collect(),
            next: next.map(id),
        }
    }

    #[test]
    fn messages_are_in_the_order_of_their_times() {
        for (case, sent, received, expected, earlier) in [
            ("nothing", page(&[], None), page(&[], None), &[][..], None),
            (
                "all of both",
                page(&[(5, 50), (1, 10)], None),
                page(&[(4, 40), (2, 20)], None),
                &[1, 2, 4, 5],
                None,
            ),
            (
                "IDs of different blocks",
                page(&[(3, 50), (2, 10)], None),
                page(&[(10_001, 30)], None),
                &[2, 10_001, 3],
                None,
            ),
            (
                "one list goes on",
                page(&[(9, 90), (8, 80)], Some(8)),
                page(&[(7, 70), (1, 10)], None),
                &[8, 9],
                Some(8),
            ),
            (
                "both lists go on",
                page(&[(9, 90), (5, 50)], Some(5)),
                page(&[(8, 80), (7, 70)], Some(7)),
                &[7, 8, 9],
                Some(7),
            ),
            (
                "a search that found nothing yet",
                page(&[], Some(6)),
                page(&[(7, 70), (4, 40)], None),
                &[7],
                Some(6),
            ),
        ] {
            let (shown, next) = merge(sent, received);
            let shown: Vec<u64> = shown.iter().map(|message| message.id.get()).collect();
            assert_eq!(shown, expected, "{case}");
            assert_eq!(next.map(MessageId::get), earlier, "{case}");
        }
    }
}
