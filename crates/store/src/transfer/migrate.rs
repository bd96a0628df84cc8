//! Moves a service from one database to another.

use super::tables::{CopyTime, TABLES};
use super::{
    Checked, Copier, Endpoint, Hold, TransferError, Watch, check_level, check_tables,
    copy_everything, count, prepare,
};
use crate::DatabaseUrl;
use crate::seal::{Kind, Seal};

/// The progress of a move.
#[derive(Debug)]
pub enum Moved {
    /// A service uses the source. Rows that do not change any more were copied; the rest follows later.
    Begun {
        /// The tables that are not complete yet, and how many rows are missing.
        remaining: Vec<(&'static str, u64)>,
    },
    /// Everything is in the target, which may be used now. The source is sealed.
    Complete(Vec<Checked>),
    /// The move was complete already.
    Already,
}

/// Moves everything from one database to another, or continues such a move. `is_busy` says that a service is known to
/// use the source, whatever the source itself shows.
pub async fn migrate(
    from: &DatabaseUrl,
    to: &DatabaseUrl,
    is_busy: bool,
    watch: &mut dyn Watch,
) -> Result<Moved, TransferError> {
    let (from_name, to_name) = (from.to_string(), to.to_string());
    if from_name == to_name {
        return Err(TransferError::Same(from_name));
    }
    let mut source = Endpoint::find(from).await?;
    check_level(&mut source, &from_name).await?;
    let mut target = Endpoint::make(to).await?;
    check_tables(&mut source, &from_name).await?;
    check_tables(&mut target, &to_name).await?;
    let (source_created_us, target_created_us) =
        (source.created_us().await?, target.created_us().await?);
    let moved = Seal {
        kind: Kind::Moved,
        created_us: target_created_us,
        other: to_name.clone(),
    };
    if let Some(seal) = source.seal().await? {
        if seal.kind != Kind::Moved || seal.created_us != target_created_us {
            return Err(sealed(from_name, &seal));
        }
        if target.seal().await?.is_none() {
            return Ok(Moved::Already);
        }
    }
    let copying = Seal {
        kind: Kind::Copying,
        created_us: source_created_us,
        other: from_name.clone(),
    };
    let is_new = prepare(&mut target, &to_name, &copying).await?;
    let mut known = if is_new {
        None
    } else {
        Some(Endpoint::find(to).await?)
    };
    if is_busy || !hold_if_idle(&mut source).await? {
        source.begin(Hold::Snapshot).await?;
        let remaining = copy_settled(&mut source, &mut target, known.as_mut(), watch).await?;
        source.commit().await?;
        return Ok(Moved::Begun { remaining });
    }
    let checked = copy_everything(&mut source, &mut target, known.as_mut(), watch).await?;
    // In this order, two databases never send the same message, even if the process stops in between.
    source.execute("DELETE FROM node".to_owned()).await?;
    source.set_seal(Some(&moved)).await?;
    source.commit().await?;
    target.set_seal(None).await?;
    Ok(Moved::Complete(checked))
}

/// Locks the source against writes. Returns `false` if a node uses it.
async fn hold_if_idle(source: &mut Endpoint) -> Result<bool, TransferError> {
    if source.count_living_nodes().await? > 0 {
        return Ok(false);
    }
    source.begin(Hold::Exclusive).await?;
    // A node may have started meanwhile.
    let is_idle = source.count_living_nodes().await? == 0;
    if !is_idle {
        source.roll_back().await?;
    }
    Ok(is_idle)
}

/// Copies what does not change any more, and counts the rest.
async fn copy_settled(
    source: &mut Endpoint,
    target: &mut Endpoint,
    known: Option<&mut Endpoint>,
    watch: &mut dyn Watch,
) -> Result<Vec<(&'static str, u64)>, TransferError> {
    let mut total = 0;
    for table in TABLES {
        if let CopyTime::Growing { settled, .. } = table.copy_time {
            total += count(source, &table.rows(source.engine()), Some(settled)).await?;
        }
    }
    watch.begins(total.unsigned_abs());
    let mut copier = Copier {
        source,
        target,
        known,
        watch,
    };
    for table in copier.plans().await? {
        if matches!(table.plan.table.copy_time, CopyTime::Growing { .. }) {
            copier.copy(&table, true).await?;
        }
    }
    let mut remaining = Vec::new();
    for table in TABLES {
        let settled = match table.copy_time {
            CopyTime::Growing { settled, .. } => settled,
            CopyTime::Changing => "FALSE",
        };
        let left = count(source, table.name, Some(&format!("NOT ({settled})"))).await?;
        if left > 0 {
            remaining.push((table.name, left.unsigned_abs()));
        }
    }
    Ok(remaining)
}

/// Opens the source of a move again. The target becomes an unfinished copy; changes that were made there since the move
/// stay there.
pub async fn undo(from: &DatabaseUrl, to: &DatabaseUrl) -> Result<(), TransferError> {
    let (from_name, to_name) = (from.to_string(), to.to_string());
    let mut source = Endpoint::find(from).await?;
    check_level(&mut source, &from_name).await?;
    let mut target = Endpoint::find(to).await?;
    check_level(&mut target, &to_name).await?;
    let target_created_us = target.created_us().await?;
    match source.seal().await? {
        Some(seal) if seal.kind == Kind::Moved && seal.created_us == target_created_us => {}
        Some(seal) => return Err(sealed(from_name, &seal)),
        None => {
            return Err(TransferError::Sealed {
                database: from_name,
                what: format!("not a database that was moved to {to_name}: it is open"),
            });
        }
    }
    target.begin(Hold::Exclusive).await?;
    let nodes = target.count_living_nodes().await?;
    if nodes > 0 {
        return Err(TransferError::Busy {
            database: to_name,
            nodes,
        });
    }
    let copying = Seal {
        kind: Kind::Copying,
        created_us: source.created_us().await?,
        other: from_name,
    };
    target.set_seal(Some(&copying)).await?;
    target.commit().await?;
    source.set_seal(None).await
}

fn sealed(database: String, seal: &Seal) -> TransferError {
    let other = &seal.other;
    TransferError::Sealed {
        database,
        what: match seal.kind {
            Kind::Moved => format!("a database whose contents were moved to {other} before"),
            Kind::Copying => format!("itself an unfinished copy of {other}"),
            Kind::Restoring => format!("itself an unfinished restore of {other}"),
        },
    }
}
