//! The journal as evidence: `calls --verify`, `calls --export`, what `doctor` finds,
//! and what `replay` refuses.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::run::{ProgramRun, RunOutput};

fn within(folder: &Path, arguments: &[&str]) -> RunOutput {
    ProgramRun::new([]).args(arguments).within(folder).done()
}

/// A folder with three recorded calls.
fn three_calls() -> TempDir {
    let (child, folder) = ProgramRun::new(["call", "echo", "n=1"]).start();
    child.wait_with_output().unwrap();
    for n in ["n=2", "n=3"] {
        within(folder.path(), &["call", "echo", n]);
    }
    folder
}

fn journal(folder: &Path) -> PathBuf {
    folder.join(".local/state/toolgate/journal.db")
}

fn forge(folder: &Path, sql: &str) {
    let database = Connection::open(journal(folder)).unwrap();
    database.execute_batch(sql).unwrap();
}

#[test]
fn a_changed_call_is_named_and_not_replayed() {
    let folder = three_calls();
    let folder = folder.path();
    let verified = within(folder, &["calls", "--verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(
        verified.stdout.starts_with("intact: 3 calls"),
        "{verified:?}"
    );
    let head = verified.stdout.trim().rsplit(' ').next().unwrap();
    assert_eq!(head.len(), 64, "{verified:?}");
    let expected = within(folder, &["calls", "--verify", "--expect", head]);
    assert_eq!(expected.code, Some(0), "{expected:?}");
    let wrong = within(folder, &["calls", "--verify", "--expect", "abc"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");

    let forged = r#"UPDATE calls SET asked = '{"n":666}' WHERE seq = (SELECT max(seq) FROM calls)"#;
    forge(folder, forged);
    let verified = within(folder, &["calls", "--verify"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.starts_with("changed "), "{verified:?}");
    let json = within(folder, &["calls", "--verify", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["findings"][0]["problem"], "changed");
    let replayed = within(folder, &["replay", "last", "--yes"]);
    assert_eq!(replayed.code, Some(1), "{replayed:?}");
    let refusal = "the record of this call can't be trusted: its row was changed since";
    assert!(replayed.stderr.contains(refusal), "{replayed:?}");
    let id = json["findings"][0]["call"].as_str().unwrap();
    let replayed = within(folder, &["replay", id, "--yes", "--unverified"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.contains("666"), "{replayed:?}");
    let doctor = within(folder, &["doctor"]);
    assert!(
        doctor.stdout.contains("NOT intact: 1 problem"),
        "{doctor:?}"
    );
}

#[test]
fn an_export_has_every_call_and_the_head_and_overwrites_nothing() {
    let folder = three_calls();
    let folder = folder.path();
    let exported = within(folder, &["calls", "--export"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let lines: Vec<Value> = exported
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["asked"]["n"], 1);
    assert!(
        lines
            .iter()
            .take(3)
            .all(|line| line["chain"]["hash"].is_string())
    );
    let head = lines[3]["head"].as_str().unwrap();
    let verified = within(folder, &["calls", "--verify", "--expect", head]);
    assert_eq!(verified.code, Some(0), "{verified:?}");

    let file = folder.join("calls.ndjson");
    let to = file.to_str().unwrap();
    let exported = within(folder, &["calls", "--export", to, "--outcome", "failed"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
    let again = within(folder, &["calls", "--export", to]);
    assert_ne!(again.code, Some(0), "{again:?}");
}

#[test]
fn records_are_sent_to_a_file_that_the_configuration_names() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mine.json");
    std::fs::write(
        &config,
        r#"{ "journal": { "forward": { "file": "copy/calls.ndjson" } } }"#,
    )
    .unwrap();
    let config = config.to_str().unwrap();
    let done = within(folder.path(), &["--config", config, "call", "echo", "n=1"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let copy = std::fs::read_to_string(folder.path().join("copy/calls.ndjson")).unwrap();
    assert_eq!(copy.lines().count(), 1, "{copy}");
    assert!(copy.contains(r#""asked":{"n":1}"#), "{copy}");
}
