//! No circles between the top-level modules of a crate: a reader can understand them one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{crate_folders, name_of, read, report, walk};

/// The modules that each module names.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_do_not_import_each_other() {
    let mut breaches = Vec::new();
    for folder in crate_folders() {
        let imports = find_imports(&folder.join("src"));
        for circle in find_circles(&imports) {
            breaches.push(format!("{}: {circle}", name_of(&folder)));
        }
    }
    report("circles between modules", &breaches);
}

#[test]
fn a_circle_is_found() {
    let imports = |pairs: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in pairs {
            let named = imports.entry((*from).to_owned()).or_default();
            named.insert((*to).to_owned());
        }
        imports
    };
    for (pairs, expected) in [
        (&[("a", "b"), ("b", "c"), ("a", "c")][..], &[][..]),
        (&[("a", "b"), ("b", "a")], &["a, b"]),
        (
            &[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")],
            &["a, b, c"],
        ),
    ] {
        assert_eq!(find_circles(&imports(pairs)), expected, "{pairs:?}");
    }
    let code = "use crate::one::X;\nuse crate::{Y, two::Z};\n// crate::three\n";
    let named = named_modules(code);
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["Y", "one", "two"]);
}

fn find_imports(source: &Path) -> Imports {
    let mut imports = Imports::new();
    for file in walk(source) {
        let inside = file.strip_prefix(source).expect("it was found there");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        let is_test = inside
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        if file.extension().is_some_and(|extension| extension == "rs")
            && !is_test
            && !["lib", "main"].contains(&&*module)
        {
            let named = named_modules(&read(&file));
            imports.entry(module).or_default().extend(named);
        }
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, named) in &mut imports {
        named.retain(|name| name != module && modules.contains(name));
    }
    imports
}

/// What follows `crate::` in a file, without its comments and tests.
fn named_modules(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = code.unwrap_or_default().lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join(" ");
    let mut named = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        // A list of paths ends with its brace; what is nested in it is cut away.
        let paths = match path.strip_prefix('{') {
            Some(list) => list.split(['{', '}']).next().unwrap_or_default(),
            None => path,
        };
        let is_list = paths.len() < path.len();
        let count = if is_list { usize::MAX } else { 1 };
        for one in paths.split(',').take(count) {
            let name = one.trim_start();
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            named.insert(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    named.remove("");
    named
}

/// The modules that reach themselves, those of one circle together.
fn find_circles(imports: &Imports) -> Vec<String> {
    let reached = imports.keys().map(|from| (from, reach(imports, from)));
    let reached: BTreeMap<&String, BTreeSet<String>> = reached.collect();
    let mut circles = BTreeSet::new();
    for (from, modules) in &reached {
        if modules.contains(*from) {
            let back = modules.iter().filter(|one| {
                let onward = reached.get(one);
                onward.is_some_and(|onward| onward.contains(*from))
            });
            circles.insert(back.cloned().collect::<Vec<_>>().join(", "));
        }
    }
    circles.into_iter().collect()
}

fn reach(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = imports.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module.clone()) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}
