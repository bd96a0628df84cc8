//! `switchboard backup` and `switchboard restore`

use serde_json::json;
use store::transfer;

use super::migrate::shown;
use super::progress::Rows;
use super::{checked, print_json};
use crate::cli::{BackupArgs, RestoreArgs};
use crate::config::Config;
use crate::{keys, private, serve};

pub(super) async fn run(config: &Config, args: BackupArgs) -> anyhow::Result<()> {
    let from = config.database_url()?;
    let mut rows = Rows::new(!args.output.json);
    let made = transfer::backup(&from, &args.to, args.force, &mut rows).await;
    rows.finish();
    shown(made)?;
    let key = keys::copy_beside(config, &args.to)?;
    let bytes = std::fs::metadata(&args.to)?.len();
    let file = args.to.display().to_string();
    if args.output.json {
        let key = key.map(|path| path.display().to_string());
        print_json(
            &json!({ "from": from.to_string(), "file": file, "bytes": bytes, "keyFile": key }),
        );
        return Ok(());
    }
    println!("{from} is in {file}, {bytes} bytes. Keep it as you keep passwords.");
    if let Some(key) = key {
        println!(
            "The key that decrypts its secrets is in {}; keep it apart from the backup, and put it beside the file again \
             before you restore.",
            key.display()
        );
    }
    Ok(())
}

pub(super) async fn restore(config: &Config, args: RestoreArgs) -> anyhow::Result<()> {
    let to = config.database_url()?;
    serve::create_folder(&to)?;
    private::folder(&config.data_dir)?;
    let mut rows = Rows::new(!args.output.json);
    let restored = transfer::restore(&args.from, &to, &mut rows).await;
    rows.finish();
    let checked = shown(restored)?;
    keys::take_from_beside(config, &args.from)?;
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
