//! Rows of carriers: their state, as reported by nodes.

use domain::ports::{CarrierState, CarrierStatus, Health, NodeCarrierStatus};

use super::{Corrupt, SqlRow, node_id, timestamp, utf8};

/// The columns of a carrier's state.
pub(crate) struct CarrierColumns {
    pub(crate) node: i64,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) health: String,
    pub(crate) links_up: i32,
    pub(crate) links: i32,
    pub(crate) links_total: i32,
    pub(crate) note: Option<Vec<u8>>,
    pub(crate) waiting: i64,
    pub(crate) under_way: i64,
    pub(crate) places: i64,
    pub(crate) per_second: i64,
    pub(crate) at_us: i64,
}

impl CarrierColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            node: row.column(0)?,
            name: row.column(1)?,
            kind: row.column(2)?,
            health: row.column(3)?,
            links_up: row.column(4)?,
            links: row.column(5)?,
            note: row.column(6)?,
            waiting: row.column(7)?,
            under_way: row.column(8)?,
            at_us: row.column(9)?,
            places: row.column(10)?,
            per_second: row.column(11)?,
            links_total: row.column(12)?,
        })
    }

    pub(crate) fn status(self) -> Result<NodeCarrierStatus, Corrupt> {
        let state = CarrierState {
            health: Health::from_name(&self.health).ok_or(Corrupt("health of a carrier"))?,
            links_up: count(self.links_up)?,
            links: count(self.links)?,
            links_total: count(self.links_total)?,
            note: self.note.map(utf8).transpose()?,
        };
        Ok(NodeCarrierStatus {
            node: node_id(self.node)?,
            at: timestamp(self.at_us)?,
            status: CarrierStatus {
                name: self.name,
                kind: self.kind,
                state,
                waiting: count(self.waiting)?,
                under_way: count(self.under_way)?,
                window: count(self.places)?,
                per_second: count(self.per_second)?,
            },
        })
    }
}

fn count<N, T: TryFrom<N>>(number: N) -> Result<T, Corrupt> {
    T::try_from(number).map_err(|_| Corrupt("count of a carrier"))
}
