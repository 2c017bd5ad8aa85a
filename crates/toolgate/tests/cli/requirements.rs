//! Compares `docs/requirements.md`, which states each requirement with the tests that prove it,
//! with the tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/requirements.md");
const ATTACKS: &str = include_str!("../../../../docs/security.md");

/// The prefix of each topic's IDs, and how many there are.
const TOPICS: [(&str, usize); 10] = [
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

/// Prose below a requirement's heading, and the bullets that follow it.
#[derive(Default)]
struct RequirementEntry {
    id: &'static str,
    text: String,
    proofs: Vec<RequirementProof>,
}

/// A bullet: a test, and what the page adds about it.
struct RequirementProof {
    test: &'static str,
    note: String,
}

/// The page's requirements: `### ID: title`, then prose and bullets in turn. A paragraph after a
/// bullet begins the next statement.
fn statements() -> Vec<RequirementEntry> {
    let mut statements: Vec<RequirementEntry> = Vec::new();
    let mut is_requirement = false;
    for line in PAGE.lines() {
        if line.starts_with('#') {
            let heading = line.strip_prefix("### ");
            is_requirement = heading.is_some();
            if let Some(heading) = heading {
                let (id, _title) = heading
                    .split_once(": ")
                    .unwrap_or_else(|| panic!("no title: {line}"));
                statements.push(RequirementEntry {
                    id,
                    ..RequirementEntry::default()
                });
            }
            continue;
        }
        let Some(statement) = statements.last_mut().filter(|_| is_requirement) else {
            continue;
        };
        if let Some(bullet) = line.strip_prefix("- ") {
            let code = bullet
                .strip_prefix('`')
                .and_then(|code| code.split_once('`'));
            let (test, note) = code.unwrap_or_else(|| panic!("a bullet names no test: {line}"));
            let note = note.to_owned();
            statement.proofs.push(RequirementProof { test, note });
        } else if line.is_empty() {
            statement.text.push('\n');
        } else if let Some(proof) = statement.proofs.last_mut() {
            if line.starts_with("  ") {
                proof.note.push_str(line);
            } else {
                let (id, text) = (statement.id, line.to_owned());
                statements.push(RequirementEntry {
                    id,
                    text,
                    proofs: Vec::new(),
                });
            }
        } else {
            statement.text.push_str(line);
            statement.text.push('\n');
        }
    }
    statements
}

/// The IDs of every topic, in the order of the page.
fn ids() -> Vec<String> {
    let numbered =
        |(topic, count): (&'static str, usize)| (1..=count).map(move |n| format!("{topic}{n}"));
    TOPICS.into_iter().flat_map(numbered).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[test]
fn every_requirement_is_stated_once_and_in_order() {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("### "));
    let listed: Vec<&str> = headings
        .map(|heading| heading.split(':').next().unwrap_or_default())
        .collect();
    assert_eq!(listed, ids());
}

#[test]
fn every_listed_test_exists_and_every_test_with_an_id_is_listed_under_it() {
    let existing = tests();
    let statements = statements();
    let listed: BTreeSet<(String, &str)> = statements
        .iter()
        .flat_map(|statement| {
            let id = statement.id.to_lowercase();
            statement
                .proofs
                .iter()
                .map(move |proof| (id.clone(), proof.test))
        })
        .collect();
    let missing: Vec<_> = listed
        .iter()
        .filter(|(_, test)| !existing.contains(*test))
        .collect();
    assert!(
        missing.is_empty(),
        "in docs/requirements.md, but no such test: {missing:#?}"
    );
    let ids: BTreeSet<String> = ids().iter().map(|id| id.to_lowercase()).collect();
    let unlisted: Vec<_> = existing
        .iter()
        .filter_map(|test| Some((test.split('_').next()?.to_owned(), test.as_str())))
        .filter(|pair| ids.contains(&pair.0) && !listed.contains(pair))
        .collect();
    assert!(
        unlisted.is_empty(),
        "a test, but not under its ID in docs/requirements.md: {unlisted:#?}"
    );
}

#[test]
fn every_statement_has_a_test_and_says_more_than_its_name() {
    for RequirementEntry { id, text, proofs } in statements() {
        assert!(!proofs.is_empty(), "{id} has no test for: {text}");
        for RequirementProof { test, note } in proofs {
            let name = words(test);
            let note = words(&note);
            let repeats =
                words(&text).is_subset(&name) || !note.is_empty() && note.is_subset(&name);
            assert!(!repeats, "{id} only repeats the name of {test}");
        }
    }
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
