//! Matches many patterns in one pass.
//!
//! A number is read once, digit by digit, and the final state tells which patterns match. Patterns are bounded, so the
//! automaton has no loops: states are built from the last digit backwards and equal states are merged, which gives the
//! smallest automaton.

use std::collections::HashMap;

use super::pattern::{Program, Step};

/// The state in which nothing can match any more.
const DEAD: u16 = 0;

/// The class of digits that no pattern matches.
pub(super) const NO_CLASS: u16 = 0;

/// A table that assigns a class to digits.
pub(super) struct Automaton {
    states: Box<[State]>,
    start: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    /// The state after each digit.
    next: [u16; 10],
    /// The class of digits that end here.
    class: u16,
}

impl Automaton {
    /// Builds the table for a program. `class_of` gets the number of digits and the patterns that match them.
    pub(super) fn new(program: &Program, class_of: impl FnMut(usize, &[u16]) -> u16) -> Self {
        let dead = State {
            next: [DEAD; 10],
            class: NO_CLASS,
        };
        let mut builder = Builder {
            program,
            class_of,
            states: vec![dead],
            by_content: HashMap::from([(dead, DEAD)]),
            by_steps: HashMap::new(),
            last_round: vec![0; program.len()],
            round: 0,
        };
        let first = builder.reached(program.starts().iter().copied());
        let start = builder.state(0, first);
        Self {
            states: builder.states.into(),
            start,
        }
    }

    pub(super) fn class_of(&self, digits: &[u8]) -> u16 {
        let mut state = self.start;
        for &digit in digits {
            state = self.states[usize::from(state)].next[usize::from(digit)];
            if state == DEAD {
                break;
            }
        }
        self.states[usize::from(state)].class
    }

    #[cfg(test)]
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }
}

struct Builder<'a, F> {
    program: &'a Program,
    class_of: F,
    states: Vec<State>,
    /// States by content, to merge equal ones.
    by_content: HashMap<State, u16>,
    /// States by the number of digits read and the steps reached.
    by_steps: HashMap<(usize, Box<[u16]>), u16>,
    /// The round in which each step was last reached.
    last_round: Vec<u32>,
    round: u32,
}

impl<F: FnMut(usize, &[u16]) -> u16> Builder<'_, F> {
    fn state(&mut self, digits_read: usize, reached: Box<[u16]>) -> u16 {
        if reached.is_empty() {
            return DEAD;
        }
        let key = (digits_read, reached);
        if let Some(&state) = self.by_steps.get(&key) {
            return state;
        }
        let class = self.class(digits_read, &key.1);
        let next = std::array::from_fn(|digit| {
            let after = self.after(&key.1, digit);
            self.state(digits_read + 1, after)
        });
        let state = self.intern(State { next, class });
        self.by_steps.insert(key, state);
        state
    }

    fn class(&mut self, digits_read: usize, reached: &[u16]) -> u16 {
        let matching: Vec<u16> = reached
            .iter()
            .filter_map(|&at| match self.program.step(at) {
                Step::Accept(pattern) => Some(pattern),
                _ => None,
            })
            .collect();
        if matching.is_empty() {
            return NO_CLASS;
        }
        (self.class_of)(digits_read, &matching)
    }

    /// The steps reached after one more digit.
    fn after(&mut self, reached: &[u16], digit: usize) -> Box<[u16]> {
        let program = self.program;
        self.reached(reached.iter().filter_map(|&at| match program.step(at) {
            Step::Digit(set) if set & (1 << digit) != 0 => Some(at + 1),
            _ => None,
        }))
    }

    /// The steps that take a digit or accept, reachable without a digit.
    fn reached(&mut self, from: impl Iterator<Item = u16>) -> Box<[u16]> {
        self.round += 1;
        let mut open: Vec<u16> = from.collect();
        let mut reached = Vec::with_capacity(open.len());
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut self.last_round[usize::from(at)], self.round) == self.round {
                continue;
            }
            match self.program.step(at) {
                Step::Digit(_) | Step::Accept(_) => reached.push(at),
                Step::Fork(second) => open.extend([at + 1, second]),
                Step::Jump(to) => open.push(to),
                Step::Open(_) | Step::Close(_) => open.push(at + 1),
                Step::End => unreachable!("only dialling prefixes name the end of a number"),
            }
        }
        reached.sort_unstable();
        reached.into()
    }

    fn intern(&mut self, state: State) -> u16 {
        *self.by_content.entry(state).or_insert_with(|| {
            let number =
                u16::try_from(self.states.len()).expect("a plan has fewer than 65,536 states");
            self.states.push(state);
            number
        })
    }
}
