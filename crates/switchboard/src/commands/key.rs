//! `switchboard key …`

use serde_json::json;

use super::print_json;
use crate::cli::KeyCommand;
use crate::config::Config;
use crate::{keys, serve};

pub(super) async fn run(config: &Config, command: KeyCommand) -> anyhow::Result<()> {
    let KeyCommand::Rotate { output } = command;
    let database = config.database_url()?;
    // Also creates what is missing, and refuses keys that do not fit.
    drop(serve::open_store(config, &database).await?);
    let ring = keys::load(config)?.ring;
    let newest = ring.newest();
    let options = serve::store_options(config, ring);
    let rows = store::rotate_key(&database, &options).await?;
    if output.json {
        print_json(&json!({ "key": newest.to_string(), "encrypted": rows }));
        return Ok(());
    }
    println!("The key {newest} encrypts now; {rows} rows were encrypted again.");
    println!(
        "Restart the nodes one after another: each goes on with the former key until then. Afterwards run this command\n\
         once more; when it encrypts 0 rows, the former key can be removed."
    );
    Ok(())
}
