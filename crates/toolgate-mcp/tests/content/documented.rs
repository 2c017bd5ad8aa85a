//! `docs/mcp.md` names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all functions below a folder of sources.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1);
            let names = names.filter_map(|rest| rest.split_once("()"));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn the_page_about_mcp_names_tests_that_exist() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    for folder in ["src", "tests"] {
        functions(&own.join(folder), &mut known);
    }
    let page = std::fs::read_to_string(own.join("../../docs/mcp.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "));
    let named: Vec<&str> = cells
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 50, "{}", named.len());
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !known.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
