//! Carrier references: the IDs that carriers gave to parts.

use std::collections::HashSet;

use deadpool_postgres::Transaction;

use super::fault::Fault;

const INSERT_PART_REFS: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail, cost_micros)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::int[],
        $8::bigint[])";

/// The carrier references of the parts of one message.
pub(super) struct PartRefs<'a> {
    pub(super) id: i64,
    pub(super) carrier: &'a str,
    pub(super) references: Vec<&'a str>,
    pub(super) at_us: i64,
    pub(super) tail: i32,
    /// What the carrier charges for all of them.
    pub(super) cost_micros: Option<i64>,
    /// Whether the first reference is stored together with the queue row.
    pub(super) is_first_stored: bool,
}

/// The parameters of [`INSERT_PART_REFS`].
#[derive(Default)]
struct PartRefColumns<'a> {
    carrier: Vec<&'a str>,
    reference: Vec<&'a [u8]>,
    id: Vec<i64>,
    part: Vec<i16>,
    parts: Vec<i16>,
    at_us: Vec<i64>,
    tail: Vec<i32>,
    cost_micros: Vec<Option<i64>>,
}

impl<'a> PartRefColumns<'a> {
    /// The parts that have no carrier reference yet.
    fn push(&mut self, refs: &'a PartRefs<'_>) {
        let parts = count(&refs.references);
        let done = usize::from(refs.is_first_stored);
        for (reference, part) in refs.references.iter().zip(1..).skip(done) {
            self.carrier.push(refs.carrier);
            self.reference.push(reference.as_bytes());
            self.id.push(refs.id);
            self.part.push(part);
            self.parts.push(parts);
            self.at_us.push(refs.at_us);
            self.tail.push(refs.tail);
            self.cost_micros.push(refs.cost_micros);
        }
    }
}

/// Stores the carrier references of settled messages that are not stored yet.
pub(super) async fn store_remaining(
    transaction: &Transaction<'_>,
    refs: &[PartRefs<'_>],
    settled: &HashSet<i64>,
) -> Result<(), Fault> {
    let mut rest = PartRefColumns::default();
    for refs in refs.iter().filter(|refs| settled.contains(&refs.id)) {
        rest.push(refs);
    }
    if rest.id.is_empty() {
        return Ok(());
    }
    let statement = transaction.prepare_cached(INSERT_PART_REFS).await?;
    let values: super::Values<'_> = &[
        &rest.carrier,
        &rest.reference,
        &rest.id,
        &rest.part,
        &rest.parts,
        &rest.at_us,
        &rest.tail,
        &rest.cost_micros,
    ];
    transaction.execute(&statement, values).await?;
    Ok(())
}

pub(super) fn count(references: &[&str]) -> i16 {
    i16::try_from(references.len()).unwrap_or(i16::MAX)
}
