use std::os::unix::fs::symlink;

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\n# {name}\n")
}

fn scan_one(root: &Path) -> ScanResult {
    scan(&[root.to_owned()], &mut DigestCache::default())
}

fn uris(result: &ScanResult) -> Vec<&str> {
    result.skills.iter().map(FoundSkill::uri).collect()
}

fn files(skill: &FoundSkill) -> Vec<&str> {
    skill.files.iter().map(|file| file.uri.as_str()).collect()
}

#[test]
fn skills_are_found_with_all_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "git-workflow/SKILL.md", &skill("git-workflow"));
    write(root, "git-workflow/references/A guide.md", "one");
    write(root, "acme/billing/refunds/SKILL.md", &skill("refunds"));
    write(
        root,
        "acme/billing/refunds/nested/SKILL.md",
        &skill("nested"),
    );
    write(root, "no-skill/README.md", "nothing");
    let found = scan_one(root);
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(
        uris(&found),
        [
            "skill://acme/billing/refunds/SKILL.md",
            "skill://acme/billing/refunds/nested/SKILL.md",
            "skill://git-workflow/SKILL.md",
        ]
    );
    assert_eq!(
        files(&found.skills[0]),
        [
            "skill://acme/billing/refunds/SKILL.md",
            "skill://acme/billing/refunds/nested/SKILL.md",
        ]
    );
    let entry = &found.skills[2].entry;
    assert_eq!(
        entry["frontmatter"],
        json!({ "name": "git-workflow", "description": "Does git-workflow" })
    );
    assert_eq!(
        entry["resources"][1],
        json!({
            "uri": "skill://git-workflow/references/A%20guide.md", "size": 3,
            "digest": "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
        })
    );

    let itself = scan_one(&root.join("acme/billing/refunds"));
    assert_eq!(
        uris(&itself),
        [
            "skill://refunds/SKILL.md",
            "skill://refunds/nested/SKILL.md"
        ]
    );
    let twice = [root.join("acme/billing"), root.join("acme/billing/refunds")];
    let twice = scan(&twice, &mut DigestCache::default());
    assert_eq!(uris(&twice), uris(&itself));
    assert_eq!(twice.problems.len(), 2, "{:?}", twice.problems);
}

#[test]
fn nothing_hidden_and_nothing_behind_a_link_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let secret = tempfile::tempdir().unwrap();
    write(secret.path(), "key", "secret");
    write(secret.path(), "other/SKILL.md", &skill("other"));
    let root = folder.path();
    write(root, "a/SKILL.md", &skill("a"));
    write(root, "a/.env", "hidden");
    write(root, "a/.git/config", "hidden");
    write(root, ".hidden/SKILL.md", &skill("hidden"));
    symlink(secret.path().join("key"), root.join("a/key")).unwrap();
    symlink(secret.path(), root.join("a/folder")).unwrap();
    symlink(secret.path().join("other"), root.join("other")).unwrap();
    rustix::fs::mkfifoat(CWD, root.join("a/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let found = scan_one(root);
    assert_eq!(uris(&found), ["skill://a/SKILL.md"]);
    assert_eq!(files(&found.skills[0]), ["skill://a/SKILL.md"]);

    // What was a file when the folder was scanned may be a link when it is read.
    let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    for hidden in [
        "a/key",
        "a/folder/key",
        "other/SKILL.md",
        "a/../a/key",
        "a/pipe",
        "a",
    ] {
        assert!(read_file(root, &path(hidden), 1000).is_err(), "{hidden}");
    }
    assert!(read_file(root, &path("a/SKILL.md"), 1000).is_ok());
    assert!(read_file(root, &path("a/SKILL.md"), 10).is_err());
    let link = folder.path().join("link");
    symlink(root.join("a"), &link).unwrap();
    let chosen = scan_one(&link);
    assert!(
        chosen.problems[0].contains("is not that of its folder"),
        "{chosen:?}"
    );
}

#[test]
fn broken_and_oversized_skills_are_left_out_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "good/SKILL.md", &skill("good"));
    write(root, "other/SKILL.md", &skill("another"));
    write(root, "plain/SKILL.md", "no frontmatter");
    write(root, "Upper/SKILL.md", &skill("Upper"));
    write(root, "no-text/SKILL.md", "---\nname: no-text\n---\n");
    std::fs::create_dir(root.join("binary")).unwrap();
    std::fs::write(root.join("binary/SKILL.md"), b"---\nname: \xff\n---\n").unwrap();
    write(root, "many/SKILL.md", &skill("many"));
    for n in 0..MAX_FILES {
        write(root, &format!("many/{n}"), "");
    }
    write(root, "large/SKILL.md", &skill("large"));
    let large = File::create(root.join("large/file")).unwrap();
    large.set_len(MAX_SKILL_BYTES).unwrap();
    let deep = "deep/".repeat(MAX_DEPTH + 1);
    write(root, &format!("{deep}deep/SKILL.md"), &skill("deep"));
    let found = scan_one(root);
    assert_eq!(uris(&found), ["skill://good/SKILL.md"]);
    assert_eq!(found.problems.len(), 7, "{:?}", found.problems);
    let missing = scan_one(&root.join("absent"));
    assert!(missing.problems[0].contains("can't be read"), "{missing:?}");
}

#[test]
fn a_changed_file_gets_another_digest_and_an_unchanged_one_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a/SKILL.md", &skill("a"));
    write(root, "a/x", "one");
    let mut cache = DigestCache::default();
    let folders = [root.to_owned()];
    let before = scan(&folders, &mut cache);
    assert_eq!(cache.0.len(), 2);
    let known = cache.0.get_mut(&root.join("a/x")).unwrap();
    known.1 = "sha256:remembered".to_owned();
    let again = scan(&folders, &mut cache);
    assert_eq!(again.skills[0].files[1].digest, "sha256:remembered");
    write(root, "a/x", "two!");
    let after = scan(&folders, &mut cache);
    assert_ne!(
        after.skills[0].files[1].digest,
        before.skills[0].files[1].digest
    );
    assert_eq!(after.skills[0].files[1].size, 4);
    std::fs::remove_file(root.join("a/x")).unwrap();
    assert_eq!(
        files(&scan(&folders, &mut cache).skills[0]),
        ["skill://a/SKILL.md"]
    );
}

#[test]
fn names_follow_the_rules_of_skills() {
    for (name, is_valid) in [
        ("a", true),
        ("pdf-2-text", true),
        (&*"a".repeat(64), true),
        (&*"a".repeat(65), false),
        ("", false),
        ("-a", false),
        ("a-", false),
        ("a--b", false),
        ("A", false),
        ("a b", false),
        ("ä", false),
    ] {
        assert_eq!(is_skill_name(name), is_valid, "{name}");
    }
}
