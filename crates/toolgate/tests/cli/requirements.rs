//! `docs/requirements.md` names a test for every clause; here the table and the tests are held against each other.

use std::collections::BTreeSet;
use std::path::Path;

const TABLE: &str = include_str!("../../../../docs/requirements.md");
const ATTACKS: &str = include_str!("../../../../docs/security.md");

/// How many lines each section of the contract has.
const SECTIONS: [(&str, usize); 10] = [
    ("EX", 10),
    ("TM", 9),
    ("VA", 7),
    ("IM", 7),
    ("PN", 8),
    ("MC", 6),
    ("MS", 2),
    ("AI", 3),
    ("QW", 7),
    ("VO", 2),
];

struct Row<'a> {
    id: &'a str,
    test: &'a str,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    TABLE.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [id, _clause, test, ..] = cells.as_slice() else {
            return None;
        };
        let is_id = id.len() >= 3
            && id[..2].chars().all(|c| c.is_ascii_uppercase())
            && id[2..].chars().all(|c| c.is_ascii_digit());
        is_id.then(|| Row {
            id,
            test: test.trim_matches('`'),
        })
    })
}

#[test]
fn every_id_of_the_contract_is_in_the_table() {
    let listed: BTreeSet<&str> = rows().map(|row| row.id).collect();
    let expected: BTreeSet<String> = SECTIONS
        .iter()
        .flat_map(|(section, last)| (1..=*last).map(move |n| format!("{section}{n}")))
        .collect();
    assert_eq!(listed, expected.iter().map(String::as_str).collect());
}

#[test]
fn every_test_of_the_table_exists_and_every_test_with_an_id_is_in_the_table() {
    let existing = tests();
    let listed: BTreeSet<String> = rows()
        .filter(|row| !row.test.starts_with("open"))
        .map(|row| row.test.to_owned())
        .collect();
    let missing: Vec<_> = listed.difference(&existing).collect();
    assert!(
        missing.is_empty(),
        "in docs/requirements.md, but no such test: {missing:#?}"
    );
    let with_id = |name: &&String| {
        let id = name.split('_').next().unwrap_or_default().to_uppercase();
        SECTIONS.iter().any(|(section, last)| {
            id.strip_prefix(section)
                .and_then(|n| n.parse().ok())
                .is_some_and(|n: usize| (1..=*last).contains(&n))
        })
    };
    let unlisted: Vec<_> = existing
        .iter()
        .filter(with_id)
        .filter(|name| !listed.contains(*name))
        .collect();
    assert!(
        unlisted.is_empty(),
        "a test, but not in docs/requirements.md: {unlisted:#?}"
    );
}

#[test]
fn every_attack_has_a_test_that_performs_it() {
    let existing = tests();
    let attacks: Vec<&str> = ATTACKS
        .lines()
        .filter(|line| line.starts_with("| F"))
        .collect();
    let numbers: BTreeSet<&str> = attacks
        .iter()
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split(','))
        .map(str::trim)
        .collect();
    let expected: BTreeSet<String> = (1..=30).map(|n| format!("F{n}")).collect();
    assert_eq!(numbers, expected.iter().map(String::as_str).collect());
    for line in attacks {
        let tests = line.split('|').nth(3).unwrap_or_default();
        for test in tests.split(',').map(|test| test.trim().trim_matches('`')) {
            assert!(existing.contains(test), "no such test: '{test}' in {line}");
        }
    }
}

/// The names of all test functions in the workspace.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut names,
    );
    names
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    is_test = true;
                } else if let Some(rest) =
                    line.strip_prefix("async fn ").or(line.strip_prefix("fn "))
                    && std::mem::take(&mut is_test)
                {
                    names.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
                }
            }
        }
    }
}
