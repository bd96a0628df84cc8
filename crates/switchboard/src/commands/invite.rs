//! `switchboard invite …`

use std::sync::Arc;

use anyhow::bail;
use domain::ports::AccountRecord;
use domain::{Person, Role};
use engine::clock::SystemClock;
use engine::identity::hasher::Hasher;
use engine::identity::people::{InviteError, Invited, LinkKind, send_link};
use engine::{Accounts, Actor, People};
use serde_json::{Value, json};

use super::{TIME, print_json, store};
use crate::cli::{InviteArgs, InviteCommand};
use crate::config::Config;

pub(super) async fn run(config: &Config, command: InviteCommand) -> anyhow::Result<()> {
    let InviteCommand::Create(args) = command;
    let store = store(config).await?;
    let clock = Arc::new(SystemClock);
    let accounts = Accounts::new(store.clone(), clock.clone());
    let people = People::new(store, clock, Arc::new(Hasher::default()));
    let by = Actor::command_line();
    // Without a role and an account, an existing person gets a link for a new password.
    if args.role.is_none()
        && args.account.is_none()
        && let Some(known) = people.find(&args.email).await?
    {
        let invited = people.invite_again(&by, &known).await?;
        let mailed = mail(config, &args, LinkKind::NewPassword, &invited).await?;
        print_again(config, &args, &known, &invited, mailed.as_ref());
        return Ok(());
    }
    let role = args.role.unwrap_or(Role::Member);
    let account = choose_account(&accounts, args.account.as_deref(), role).await?;
    let id = account.as_ref().map(|account| account.id);
    match people.invite(&by, args.email.clone(), role, id).await {
        Ok(invited) => {
            let mailed = mail(config, &args, LinkKind::Invitation, &invited).await?;
            print(
                config,
                &args,
                role,
                account.as_ref(),
                &invited,
                mailed.as_ref(),
            );
            Ok(())
        }
        Err(InviteError::Known(known)) => bail!(
            "{} can sign in already, as {}; leave out --role and --account for a link that sets a new password",
            known.email,
            known.role
        ),
        Err(error) => Err(error.into()),
    }
}

/// The named account, or the only one.
async fn choose_account(
    accounts: &Accounts,
    name: Option<&str>,
    role: Role,
) -> anyhow::Result<Option<AccountRecord>> {
    if let Some(name) = name {
        return Ok(Some(accounts.get(name).await?));
    }
    let mut all = accounts.list().await?;
    match (all.len(), role) {
        (1, _) => Ok(all.pop()),
        (_, Role::Operator) => Ok(None),
        (0, _) => {
            bail!("there is no account yet; `switchboard account create --name NAME` makes one")
        }
        (count, _) => bail!("there are {count} accounts; name one with --account NAME"),
    }
}

fn address(config: &Config, invited: &Invited) -> String {
    let dashboard = config.dashboard_url(config.server.listen);
    format!("{dashboard}/dashboard/invitation/{}", invited.link)
}

/// What happened to the e-mail with the link.
type Mailed = Result<(), String>;

/// Sends the link by e-mail, if that is configured.
async fn mail(
    config: &Config,
    args: &InviteArgs,
    kind: LinkKind,
    invited: &Invited,
) -> anyhow::Result<Option<Mailed>> {
    let Some(mailer) = config.mail.mailer()? else {
        return Ok(None);
    };
    let link = address(config, invited);
    Ok(Some(
        send_link(&*mailer, &args.email, kind, &link, invited.expires).await,
    ))
}

/// The keys of the answer in JSON, with `mailed` if e-mail is configured.
fn print_answer(mut answer: Value, mailed: Option<&Mailed>) {
    if let Some(mailed) = mailed {
        answer["mailed"] = json!(mailed.is_ok());
    }
    print_json(&answer);
}

fn print_mailed(mailed: Option<&Mailed>) {
    match mailed {
        Some(Ok(())) => println!("It was also sent by e-mail."),
        Some(Err(reason)) => {
            println!("The e-mail with it could not be sent: {reason}. Send the link yourself.");
        }
        None => {}
    }
}

fn print(
    config: &Config,
    args: &InviteArgs,
    role: Role,
    account: Option<&AccountRecord>,
    invited: &Invited,
    mailed: Option<&Mailed>,
) {
    let (link, expires) = (address(config, invited), invited.expires);
    let account = account.map(|account| account.name.as_str());
    if args.output.json {
        let answer = json!({
            "email": args.email.as_str(),
            "role": role.name(),
            "account": account,
            "link": link,
            "expires": expires.to_string(),
        });
        return print_answer(answer, mailed);
    }
    let of_account = account.map_or_else(String::new, |name| format!(" of account '{name}'"));
    println!(
        "{} becomes {role}{of_account} with this link. It works once, until {}, and is shown only now:\n{link}",
        args.email,
        expires.strftime(TIME),
    );
    print_mailed(mailed);
}

fn print_again(
    config: &Config,
    args: &InviteArgs,
    person: &Person,
    invited: &Invited,
    mailed: Option<&Mailed>,
) {
    let (link, expires) = (address(config, invited), invited.expires);
    if args.output.json {
        let answer = json!({
            "email": args.email.as_str(),
            "role": person.role.name(),
            "link": link,
            "expires": expires.to_string(),
            "newPassword": true,
        });
        return print_answer(answer, mailed);
    }
    println!(
        "{} can sign in already. This link sets a new password. It works once, until {}, and is shown only now:\n{link}",
        args.email,
        expires.strftime(TIME),
    );
    print_mailed(mailed);
}
