//! Rows of ported numbers.

use std::collections::BTreeMap;

use domain::number::ported::PortedNumber;
use domain::ports::{PortedChange, PortedVersions};
use domain::{Msisdn, Network};

use super::{Corrupt, SqlRow, micros, timestamp};

/// The columns of what was learned: number, network, time. Each number is there once, sorted, with what was learned last.
pub(crate) fn learned_columns(learned: &[PortedNumber]) -> Vec<(i64, i32, i64)> {
    let mut newest = BTreeMap::new();
    for ported in learned {
        let (number, network) = (ported.number.as_i64(), ported.network.code());
        let columns = (number, network, micros(ported.learned_at));
        let entry = newest.entry(number).or_insert(columns);
        if entry.2 <= columns.2 {
            *entry = columns;
        }
    }
    newest.into_values().collect()
}

/// The columns after which a list of changes starts.
pub(crate) fn after_change(after: Option<&PortedChange>) -> (i64, i64) {
    after.map_or((0, 0), |after| (after.change, after.ported.number.as_i64()))
}

pub(crate) fn read_change<R: SqlRow>(row: &R) -> Result<PortedChange, R::Error> {
    let number = Msisdn::from_i64(row.column(1)?).ok_or(Corrupt("ported number"))?;
    let network = Network::from_code(row.column(2)?).ok_or(Corrupt("network"))?;
    Ok(PortedChange {
        change: row.column(0)?,
        ported: PortedNumber {
            number,
            network,
            learned_at: timestamp(row.column(3)?)?,
        },
    })
}

pub(crate) fn read_versions<R: SqlRow>(row: &R) -> Result<PortedVersions, R::Error> {
    Ok(PortedVersions {
        changes: row.column(0)?,
        removals: row.column(1)?,
        access: row.column(2)?,
    })
}
