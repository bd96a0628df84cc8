//! Finds the longest known prefix of a number.

use std::fmt::Write as _;

/// Marks a slot that holds a value and has no children, so that leaves need no node.
const LEAF: u32 = 1 << 31;
/// An empty slot. Node 0 is the root, which no slot points to.
const NOTHING: u32 = 0;

/// Values by prefix.
pub(super) struct Trie {
    nodes: Vec<Node>,
}

#[derive(Clone)]
struct Node {
    /// The value of the prefix that ends here.
    value: Option<u32>,
    /// By the next digit: [`NOTHING`], the index of a node, or a value marked with [`LEAF`].
    slots: [u32; 10],
}

const EMPTY: Node = Node {
    value: None,
    slots: [NOTHING; 10],
};

impl Trie {
    /// Builds the trie from prefixes, each with a value below 2^31. A prefix never starts with a zero, so an integer
    /// can hold it.
    pub(super) fn new(entries: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let mut trie = Self { nodes: vec![EMPTY] };
        let mut digits = String::new();
        for (prefix, value) in entries {
            digits.clear();
            write!(digits, "{prefix}").expect("writing to a String cannot fail");
            trie.insert(digits.as_bytes(), value);
        }
        trie.nodes.shrink_to_fit();
        trie
    }

    fn insert(&mut self, digits: &[u8], value: u32) {
        assert!(value < LEAF, "a table has far fewer rows");
        let Some((last, path)) = digits.split_last() else {
            return;
        };
        let mut node = 0;
        for &digit in path {
            node = self.node_below(node, digit);
        }
        let slot = self.nodes[node].slots[digit_index(*last)];
        if slot == NOTHING || slot & LEAF != 0 {
            self.nodes[node].slots[digit_index(*last)] = LEAF | value;
        } else {
            self.nodes[slot as usize].value = Some(value);
        }
    }

    /// The child of a node, created if it is missing.
    fn node_below(&mut self, node: usize, digit: u8) -> usize {
        let slot = self.nodes[node].slots[digit_index(digit)];
        if slot != NOTHING && slot & LEAF == 0 {
            return slot as usize;
        }
        let below = self.nodes.len();
        self.nodes.push(Node {
            value: (slot != NOTHING).then_some(slot & !LEAF),
            ..EMPTY
        });
        self.nodes[node].slots[digit_index(digit)] =
            u32::try_from(below).expect("a table has far fewer rows");
        below
    }

    /// The value of the longest prefix that the digits start with.
    pub(super) fn find(&self, digits: &[u8]) -> Option<u32> {
        let mut node = &self.nodes[0];
        let mut found = None;
        for &digit in digits {
            match node.slots[digit_index(digit)] {
                NOTHING => return found,
                leaf if leaf & LEAF != 0 => return Some(leaf & !LEAF),
                below => node = &self.nodes[below as usize],
            }
            found = node.value.or(found);
        }
        found
    }
}

fn digit_index(digit: u8) -> usize {
    usize::from(digit - b'0')
}
