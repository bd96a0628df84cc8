//! `switchboard backup` and `switchboard restore`

use serde_json::json;
use store::transfer;

use super::migrate::shown;
use super::progress::Rows;
use super::{checked, print_json};
use crate::cli::{BackupArgs, RestoreArgs};
use crate::config::Config;
use crate::serve;

pub(super) async fn run(config: &Config, args: BackupArgs) -> anyhow::Result<()> {
    let from = config.database_url()?;
    let mut rows = Rows::new(!args.output.json);
    let made = transfer::backup(&from, &args.to, args.force, &mut rows).await;
    rows.finish();
    shown(made)?;
    let bytes = std::fs::metadata(&args.to)?.len();
    let file = args.to.display().to_string();
    if args.output.json {
        print_json(&json!({ "from": from.to_string(), "file": file, "bytes": bytes }));
    } else {
        println!("{from} is in {file}, {bytes} bytes. Keep it as you keep passwords.");
    }
    Ok(())
}

pub(super) async fn restore(config: &Config, args: RestoreArgs) -> anyhow::Result<()> {
    let to = config.database_url()?;
    serve::create_folder(&to)?;
    let mut rows = Rows::new(!args.output.json);
    let restored = transfer::restore(&args.from, &to, &mut rows).await;
    rows.finish();
    let checked = shown(restored)?;
    if args.output.json {
        let file = args.from.display().to_string();
        print_json(
            &json!({ "file": file, "to": to.to_string(), "checked": checked::to_json(&checked) }),
        );
    } else {
        print!("{}", checked::text(&checked));
        println!(
            "\n{} is in {to}. Messages that waited when the backup was made are sent once a service starts on it, those\n\
             that were sent since then a second time.",
            args.from.display()
        );
    }
    Ok(())
}
