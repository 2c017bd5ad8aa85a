//! Names that a shell completes.

use std::path::Path;
use std::process::Command;

use super::CatalogFolder;

#[test]
fn shells_complete_names_from_memory() {
    let home = CatalogFolder::new(&[("house", &[])]);
    let completed = |kind: &str| home.run(&["completions", "--names", kind]).stdout;
    assert!(!completed("tools").contains("arguments"));
    assert_eq!(completed("servers"), "house\n");
    assert_eq!(home.starts("house"), 0);
    home.run(&["list"]);
    let tools = completed("tools");
    assert!(
        tools.lines().any(|line| line == "arguments") && tools.lines().any(|line| line == "volume"),
        "{tools}"
    );
    assert_eq!(home.starts("house"), 1);
}

#[test]
fn bash_offers_the_names_that_fit() {
    let home = CatalogFolder::new(&[("house", &[])]);
    home.run(&["list"]);
    let script = home.run(&["completions", "bash"]).stdout;
    std::fs::write(home.path("completion.bash"), script).unwrap();
    for (words, expected) in [
        ("toolgate call argu", "arguments"),
        ("toolgate inspect hou", "house house__echo"),
        ("toolgate remove h", "house"),
        ("toolgate call --dr", "--dry-run"),
        ("toolgate do", "doctor"),
    ] {
        let asking = format!(
            "source completion.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMP_LINE='{words}'; COMP_POINT=${{#COMP_LINE}}; \
             $(complete -p toolgate | sed 's/.*-F \\([^ ]*\\).*/\\1/') toolgate \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let program = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let done = Command::new("bash")
            .args(["--norc", "-c", &asking])
            .current_dir(home.folder.path())
            .env("HOME", home.folder.path())
            .env("TOOLGATE_CONFIG", home.path("house.json"))
            .env("PATH", format!("{}:{path}", program.display()))
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        let offered = String::from_utf8(done.stdout).unwrap();
        assert!(
            offered.trim().starts_with(expected),
            "{words}: {offered} {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}
