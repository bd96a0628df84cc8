//! `switchboard backup` and `switchboard restore`

use serde_json::json;
use store::transfer;

use super::migrate::print_differences;
use super::progress::RowProgress;
use super::{checked, print_json};
use crate::cli::{BackupArgs, RestoreArgs};
use crate::config::Config;
use crate::{keys, private, serve};

pub(super) async fn run(config: &Config, args: BackupArgs) -> anyhow::Result<()> {
    let from = config.database_url()?;
    let mut rows = RowProgress::new(!args.output.json);
    let made = transfer::backup(&from, &args.to, args.force, &mut rows).await;
    rows.finish();
    print_differences(made)?;
    let key = keys::copy_to_backup(config, &args.to)?;
    let bytes = std::fs::metadata(&args.to)?.len();
    let file = args.to.display().to_string();
    if args.output.json {
        let key = key.map(|path| path.display().to_string());
        print_json(
            &json!({ "from": from.to_string(), "file": file, "bytes": bytes, "keyFile": key }),
        );
        return Ok(());
    }
    println!("The backup of {from} is in {file} ({bytes} bytes). Protect it like a password.");
    if let Some(key) = key {
        println!(
            "The key that decrypts its secrets is in {}; store it apart from the backup, and put it next to the file again \
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
    let mut rows = RowProgress::new(!args.output.json);
    let restored = transfer::restore(&args.from, &to, &mut rows).await;
    rows.finish();
    let checked = print_differences(restored)?;
    keys::import_from_backup(config, &args.from)?;
    if args.output.json {
        let file = args.from.display().to_string();
        print_json(
            &json!({ "file": file, "to": to.to_string(), "checked": checked::to_json(&checked) }),
        );
    } else {
        print!("{}", checked::text(&checked));
        println!(
            "\n{} is restored to {to}. A service that starts on it sends the messages that were waiting at the time of the\n\
             backup; those that were sent since then are sent a second time.",
            args.from.display()
        );
    }
    Ok(())
}
