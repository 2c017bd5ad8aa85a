//! `docs/mcp.md` names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all tests below a folder of sources.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let attributes = ["#[test]", "#[tokio::test"];
            let marked = attributes.iter().flat_map(|mark| text.split(mark).skip(1));
            let names = marked.filter_map(|rest| Some(rest.split_once("fn ")?.1));
            found.extend(names.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn the_page_about_mcp_names_tests_that_exist() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    for crate_folder in std::fs::read_dir(own.join("..")).unwrap() {
        let crate_folder = crate_folder.unwrap().path();
        let folders = ["src", "tests"].map(|folder| crate_folder.join(folder));
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            tests(folder, &mut known);
        }
    }
    let page = std::fs::read_to_string(own.join("../../docs/mcp.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "));
    let named: Vec<&str> = cells
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 80, "{}", named.len());
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !known.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
