//! `switchboard key …`

use anyhow::ensure;
use serde_json::json;
use store::KeyRetention;

use super::print_json;
use crate::cli::KeyCommand;
use crate::config::Config;
use crate::{keys, serve};

pub(super) async fn run(config: &Config, command: KeyCommand) -> anyhow::Result<()> {
    let KeyCommand::Rotate { output } = command;
    let database = config.database_url()?;
    // Also creates missing tables, and refuses wrong keys.
    drop(serve::open_store(config, &database).await?);
    let keys = keys::load(config, &database)?;
    ensure!(
        keys.storage == KeyRetention::Elsewhere,
        "without security.key the key is stored in the database; set it to a new key on every node (`openssl rand \
         -base64 32` prints one) and run this command again"
    );
    let newest = keys.ring.newest();
    let options = serve::store_options(config, &keys);
    let rows = store::rotate_key(&database, &options).await?;
    if output.json {
        print_json(&json!({ "key": newest.to_string(), "encrypted": rows }));
        return Ok(());
    }
    println!("The key {newest} encrypts now; {rows} rows were encrypted again.");
    println!(
        "Restart the nodes one after another: each uses the former key until then. Then run this command again;\n\
         once it encrypts 0 rows, the former key can be removed."
    );
    Ok(())
}
