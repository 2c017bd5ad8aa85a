//! VA6: Cargo unifies features, so the whole workspace is checked.

use std::process::Command;

#[test]
fn va6_no_crate_lets_a_schema_fetch_urls_or_read_files() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--workspace",
            "--edges",
            "features",
            "--invert",
            "jsonschema",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    assert!(tree.contains("toolgate-core"), "{tree}");
    for feature in [
        "resolve-http",
        "resolve-file",
        "resolve-async",
        "jsonschema feature \"default\"",
    ] {
        assert!(!tree.contains(feature), "{feature}:\n{tree}");
    }
}
