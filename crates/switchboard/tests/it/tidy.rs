//! Keeps the mechanical rules of the workspace, so that people need not: each breach is listed as
//! `file:line`.

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, str};

const MAX_LINES: usize = 500;
/// Its clock jumps to the next event, so its sleeps take no time.
const SIMULATION: &str = "crates/engine/tests/simulation";

/// Which of our crates each may name under `[dependencies]`. What a crate uses only in its tests is
/// its own affair.
const ALLOWED_IMPORTS: &[(&str, &[&str])] = &[
    ("bench", &["smpp", "testkit"]),
    (
        "dashboard",
        &["domain", "engine", "numbering", "permits", "requests"],
    ),
    ("domain", &[]),
    ("engine", &["domain", "numbering", "permits", "supervise"]),
    ("memory_store", &["domain"]),
    ("numbering", &["domain"]),
    ("outbound", &["domain", "permits", "smpp", "supervise"]),
    ("permits", &[]),
    ("requests", &["domain", "engine"]),
    ("smpp", &[]),
    ("smpp_server", &["domain", "engine", "smpp", "supervise"]),
    ("store", &["domain"]),
    ("supervise", &[]),
    (
        "switchboard",
        &[
            "dashboard",
            "domain",
            "engine",
            "numbering",
            "outbound",
            "smpp_server",
            "store",
            "supervise",
            "web",
        ],
    ),
    ("testkit", &[]),
    (
        "web",
        &[
            "domain",
            "engine",
            "numbering",
            "permits",
            "requests",
            "supervise",
        ],
    ),
];

/// Work left undone. Cut in two, so that this file does not report itself.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("TO", "DO"),
    concat!("db", "g!"),
];
const IGNORED_TEST: &str = concat!("#[ig", "nore");
const SLEEP: &str = concat!("sle", "ep(");
/// A sleep in a test needs this comment on its line, with the reason behind it.
const SLEEP_REASON: &str = "// tidy: ";

/// Folders of a developer's machine.
const PRIVATE_FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
];

#[test]
fn crates_import_only_in_the_drawn_direction() {
    let mut breaches = Vec::new();
    let ours: BTreeSet<String> = crate_folders().map(|path| name_of(&path)).collect();
    for folder in crate_folders() {
        let name = name_of(&folder);
        let manifest = folder.join("Cargo.toml");
        let Some((_, allowed)) = ALLOWED_IMPORTS.iter().find(|(known, _)| *known == name) else {
            breaches.push(format!(
                "{}:1: crate is not in ALLOWED_IMPORTS",
                shown(&manifest)
            ));
            continue;
        };
        for (line, import) in dependencies(&read(&manifest)) {
            if ours.contains(import) && !allowed.contains(&import) {
                breaches.push(format!("{}:{line}: {name} uses {import}", shown(&manifest)));
            }
        }
    }
    report("imports against the direction of the design", &breaches);
}

#[test]
fn files_are_short() {
    let long = rust_files().into_iter().filter_map(|path| {
        let lines = read(&path).lines().count();
        (lines > MAX_LINES).then(|| format!("{}:{lines}: over {MAX_LINES} lines", shown(&path)))
    });
    report("files that should be divided", &long.collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_undone() {
    let breaches = breaches_by_line(&rust_files(), |line| {
        LEFTOVERS
            .iter()
            .find(|marker| has_word(line, marker))
            .map(|marker| (*marker).to_owned())
    });
    report("leftover markers", &breaches);
}

#[test]
fn no_test_is_switched_off() {
    let breaches = breaches_by_line(&rust_files(), |line| {
        line.contains(IGNORED_TEST)
            .then(|| "switched off".to_owned())
    });
    report("tests that do not run", &breaches);
}

#[test]
fn tests_wait_for_states_and_do_not_sleep() {
    let tests: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| is_test(path) && !path.starts_with(root().join(SIMULATION)))
        .collect();
    let breaches = breaches_by_line(&tests, |line| {
        sleeps_without_reason(line).then(|| format!("sleeps without `{SLEEP_REASON}WHY`"))
    });
    report("sleeps in tests", &breaches);
}

#[test]
fn each_crate_says_what_it_is_for() {
    let roots = crate_folders().flat_map(|folder| {
        ["src/lib.rs", "src/main.rs"]
            .map(|root| folder.join(root))
            .into_iter()
    });
    let silent = roots.filter(|root| root.exists() && !read(root).starts_with("//! "));
    let breaches: Vec<_> = silent
        .map(|root| format!("{}:1: no `//!`", shown(&root)))
        .collect();
    report("crates that do not open with their purpose", &breaches);
}

#[test]
fn both_stores_have_the_same_migrations() {
    let folder = root().join("crates/store/migrations");
    let [sqlite, postgres] =
        ["sqlite", "postgres"].map(|backend| file_names(&folder.join(backend)));
    let mut breaches: Vec<_> = sqlite
        .symmetric_difference(&postgres)
        .map(|name| format!("{}: {name} is in one folder only", shown(&folder)))
        .collect();
    breaches.extend(misnumbered(&sqlite).map(|name| {
        format!(
            "{}: {name} is not the next NNNN_name.sql",
            shown(&folder.join("sqlite"))
        )
    }));
    if sqlite.is_empty() {
        breaches.push(format!("{}: no migrations", shown(&folder)));
    }
    report("migrations that differ or leave a gap", &breaches);
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    let breaches = breaches_by_line(&files(), |line| {
        PRIVATE_FOLDERS
            .iter()
            .find(|folder| has_path(line, folder))
            .map(|folder| format!("{folder}…"))
    });
    report("paths of a developer's machine", &breaches);
}

#[test]
fn the_rules_see_what_they_should() {
    let [marker, upper] = [LEFTOVERS[0], LEFTOVERS[3]];
    let words = [
        ("alone", format!("    {marker}()"), marker, true),
        ("part of a word", format!("my_{marker}()"), marker, false),
        ("in a longer run", format!("{upper}{upper}"), upper, false),
        (
            "before punctuation",
            format!("// {upper}: later"),
            upper,
            true,
        ),
        (
            "twice, second alone",
            format!("A{upper} {upper}"),
            upper,
            true,
        ),
    ];
    for (case, line, word, expected) in words {
        assert_eq!(has_word(&line, word), expected, "{case}");
    }
    let folder = PRIVATE_FOLDERS[2];
    let paths = [
        ("quoted", format!("\"{folder}x\""), true),
        ("file URL", format!("file://{folder}x"), true),
        ("below another folder", format!("docs{folder}x"), false),
    ];
    for (case, line, expected) in paths {
        assert_eq!(has_path(&line, folder), expected, "{case}");
    }
    let sleeps = [
        ("bare", format!("tokio::time::{SLEEP}SECOND).await;"), true),
        (
            "with a reason",
            format!("{SLEEP}SECOND); {SLEEP_REASON}the expiry itself"),
            false,
        ),
        (
            "with an empty reason",
            format!("{SLEEP}SECOND); {SLEEP_REASON} "),
            true,
        ),
        ("another function", format!("no_{SLEEP})"), false),
    ];
    for (case, line, expected) in sleeps {
        assert_eq!(sleeps_without_reason(&line), expected, "{case}");
    }
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n\"b\" = \"1\"\n\
                    [dependencies.c]\npath = \"c\"\n[dev-dependencies]\nd = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ne = { path = \"e\" }\n";
    assert_eq!(
        dependencies(manifest),
        [(4, "a"), (5, "b"), (6, "c"), (11, "e")]
    );
    let names = ["0001_a.sql", "0003_b.sql", "4_c.sql"].map(String::from);
    let gaps: Vec<_> = misnumbered(&names.into()).cloned().collect();
    assert_eq!(gaps, ["0003_b.sql", "4_c.sql"]);
}

fn report(what: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{what}:\n  {}", breaches.join("\n  "));
}

/// The breaches of a rule that looks at one line at a time. Files that are not text have no lines.
fn breaches_by_line(files: &[PathBuf], rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut breaches = Vec::new();
    for path in files {
        for (index, line) in read(path).lines().enumerate() {
            if let Some(breach) = rule(line) {
                breaches.push(format!("{}:{}: {breach}", shown(path), index + 1));
            }
        }
    }
    breaches
}

/// The names under `[dependencies]` and its like, with their lines; those for tests are left out.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut within = false;
    for (index, line) in manifest.lines().map(str::trim).enumerate() {
        if let Some(table) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let production = |table: &str| {
                let name = table.rsplit('.').next().unwrap_or_default();
                name == "dependencies" || name == "build-dependencies"
            };
            within = production(table);
            if let Some((_, name)) = table
                .rsplit_once('.')
                .filter(|(table, _)| production(table))
            {
                found.push((index + 1, name));
            }
        } else if within && !line.starts_with('#') {
            let name = line
                .split(['.', '=', ' '])
                .next()
                .unwrap_or_default()
                .trim_matches('"');
            found.extend((!name.is_empty()).then_some((index + 1, name)));
        }
    }
    found
}

/// Whether the word stands in the line and not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let behind = &line[at + word.len()..];
        !line[..at].ends_with(is_part)
            && (word.ends_with(['!', '(']) || !behind.starts_with(is_part))
    })
}

/// Whether an absolute path with that start stands in the line.
fn has_path(line: &str, start: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}');
    line.match_indices(start)
        .any(|(at, _)| !line[..at].ends_with(is_part))
}

fn sleeps_without_reason(line: &str) -> bool {
    let has_reason = line
        .split_once(SLEEP_REASON)
        .is_some_and(|(_, why)| !why.trim().is_empty());
    has_word(line, SLEEP) && !has_reason
}

/// The names that break the sequence `0001_…sql`, `0002_…sql`.
fn misnumbered(names: &BTreeSet<String>) -> impl Iterator<Item = &String> {
    let numbered = (1..).zip(names);
    numbered
        .filter(|(number, name)| !is_migration(*number, name))
        .map(|(_, name)| name)
}

fn is_migration(number: usize, name: &str) -> bool {
    let title = name
        .strip_prefix(&format!("{number:04}_"))
        .and_then(|name| name.strip_suffix(".sql"));
    title.is_some_and(|title| !title.is_empty())
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

fn rust_files() -> Vec<PathBuf> {
    files()
        .into_iter()
        .filter(|path| path.extension() == Some(OsStr::new("rs")))
        .collect()
}

/// Every file of the workspace that is or could be committed; without git, all but what is built.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output();
    match listed {
        Ok(listed) if listed.status.success() && !listed.stdout.is_empty() => {
            let names = str::from_utf8(&listed.stdout).expect("file names are UTF-8");
            let names: BTreeSet<_> = names.split('\0').filter(|name| !name.is_empty()).collect();
            // What is deleted but not yet committed is still listed.
            names
                .into_iter()
                .map(|name| root().join(name))
                .filter(|path| path.is_file())
                .collect()
        }
        _ => walk(&root()),
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let at_root = folder == root();
    let skipped = |name: &str| {
        matches!(name, ".git" | "node_modules") || at_root && matches!(name, "target" | "data")
    };
    let entries = fs::read_dir(folder).expect("a folder can be listed");
    let entries: BTreeMap<_, _> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .map(|path| (name_of(&path), path))
        .filter(|(name, _)| !skipped(name))
        .collect();
    let below = |path: PathBuf| {
        if path.is_dir() {
            walk(&path)
        } else {
            vec![path]
        }
    };
    entries.into_values().flat_map(below).collect()
}

fn crate_folders() -> impl Iterator<Item = PathBuf> {
    let folder = root().join("crates");
    file_names(&folder)
        .into_iter()
        .map(move |name| folder.join(name))
        .filter(|path| path.is_dir())
}

/// What a folder holds, sorted; nothing when there is no such folder.
fn file_names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| name_of(&entry.expect("an entry can be read").path()))
        .collect()
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The text of a file; empty when it is not text.
fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
        .to_owned()
}
