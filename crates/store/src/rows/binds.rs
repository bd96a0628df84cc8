//! Rows of binds and pools.

use domain::delivery::sharing::fair_share;
use domain::ids::PoolId;
use domain::ports::{BindShare, PoolCursor, RoutePool};

use super::{Corrupt, SqlRow};

/// `queue.owner` of messages in a pool: lower than the numbers for no owner and for carriers.
pub(crate) fn pool_owner(pool: PoolId) -> i64 {
    -1 - pool.as_i64()
}

/// The pool of this owner, if it is a pool.
pub(crate) fn pool_of(owner: i64) -> Option<PoolId> {
    PoolId::from_i64(owner.checked_neg()? - 1)
}

/// `queue.owner` of a row that could not be read.
pub(crate) const SET_ASIDE: i64 = -i64::MAX;

/// The first character of `pool.carrier` for a route pool. Names of carriers contain neither it nor the separator.
const ROUTE: char = '=';
const SEPARATOR: &str = ",";

/// `pool.carrier` of a route pool.
pub(crate) fn route_text(carriers: &[String]) -> String {
    format!("{ROUTE}{}", carriers.join(SEPARATOR))
}

/// The carriers of a route pool; `None` for a carrier pool.
pub(crate) fn route_of(text: &str) -> Option<Vec<String>> {
    let names = text.strip_prefix(ROUTE)?.split(SEPARATOR);
    Some(names.map(str::to_owned).collect())
}

/// The route pool of this row; `None` for a carrier pool.
pub(crate) fn route_pool(id: i64, text: &str) -> Result<Option<RoutePool>, Corrupt> {
    let id = PoolId::from_i64(id).ok_or(Corrupt("pool"))?;
    Ok(route_of(text).map(|carriers| RoutePool { id, carriers }))
}

/// The columns of a position within a pool.
pub(crate) fn cursor(lane: i16, due_us: i64, id: i64) -> Result<PoolCursor, Corrupt> {
    Ok((lane, super::timestamp(due_us)?, super::message_id(id)?))
}

/// The columns of a node's share of a carrier.
pub(crate) struct ShareColumns {
    /// How many living nodes want binds of this carrier.
    pub(crate) demanding_nodes: i64,
    /// How many of them have a lower ID than this node.
    pub(crate) before: i64,
    pub(crate) held: i64,
    pub(crate) surplus: i64,
    pub(crate) pool: i64,
    pub(crate) is_up_elsewhere: bool,
}

impl ShareColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            demanding_nodes: row.column(first)?,
            before: row.column(first + 1)?,
            held: row.column(first + 2)?,
            surplus: row.column(first + 3)?,
            pool: row.column(first + 4)?,
            is_up_elsewhere: row.column(first + 5)?,
        })
    }

    pub(crate) fn share(&self, total: u16) -> Result<BindShare, Corrupt> {
        let nodes = |number: i64| usize::try_from(number).map_err(|_| Corrupt("number of nodes"));
        Ok(BindShare {
            held: binds(self.held)?,
            surplus: binds(self.surplus)?,
            share: fair_share(total, nodes(self.before)?, nodes(self.demanding_nodes)?),
            pool: PoolId::from_i64(self.pool).ok_or(Corrupt("pool"))?,
            is_up_elsewhere: self.is_up_elsewhere,
        })
    }
}

fn binds(number: i64) -> Result<u16, Corrupt> {
    u16::try_from(number).map_err(|_| Corrupt("number of binds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_neither_nobody_nor_a_carrier_nor_a_node() {
        let pool = |id| PoolId::new(id).expect("in range");
        for (id, owner) in [(1, -2), (7, -8)] {
            assert_eq!(pool_owner(pool(id)), owner);
            assert_eq!(pool_of(owner), Some(pool(id)));
        }
        for owner in [-1, 0, 1, i64::MAX, i64::MIN, SET_ASIDE] {
            assert_eq!(pool_of(owner), None, "{owner}");
        }
    }

    #[test]
    fn a_route_pool_differs_from_a_carrier_pool() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        for route in [&["a"][..], &["a", "b.c-d_e"]] {
            assert_eq!(route_of(&route_text(&names(route))), Some(names(route)));
        }
        assert_eq!(route_of("a"), None);
    }
}
