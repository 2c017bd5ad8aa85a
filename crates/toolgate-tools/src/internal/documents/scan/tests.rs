use std::os::unix::fs::symlink;

use super::*;

fn names(scan: &FolderScan) -> Vec<String> {
    let root = &scan.folders[0];
    let relative = |found: &ScannedFile| {
        found
            .path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    scan.files.values().map(relative).collect()
}

fn tree(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    folder
}

fn scan(folder: &Path, limits: ScanLimits) -> FolderScan {
    FolderScan::new(&[folder.to_path_buf()], limits, &TaskControl::detached()).unwrap()
}

#[test]
fn only_visible_text_files_are_found() {
    let folder = tree(&[
        "a.md",
        "b.TXT",
        "c.rst",
        "d.org",
        "e.adoc",
        "f.markdown",
        "g.text",
        "sub/README",
        "sub/deep/Changelog",
        "h.rs",
        "i.png",
        "Makefile",
        ".hidden.md",
        ".git/notes.md",
        "no_extension",
        "md",
    ]);
    let expected = [
        "a.md",
        "b.TXT",
        "c.rst",
        "d.org",
        "e.adoc",
        "f.markdown",
        "g.text",
        "sub/README",
        "sub/deep/Changelog",
    ];
    assert_eq!(names(&scan(folder.path(), ScanLimits::default())), expected);
}

#[test]
fn links_are_not_followed() {
    let outside = tree(&["secret.md"]);
    let folder = tree(&["a.md", "sub/b.md"]);
    symlink(
        outside.path().join("secret.md"),
        folder.path().join("link.md"),
    )
    .unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink(folder.path(), folder.path().join("sub/loop")).unwrap();
    assert_eq!(
        names(&scan(folder.path(), ScanLimits::default())),
        ["a.md", "sub/b.md"]
    );
}

#[test]
fn a_folder_that_is_itself_a_link_is_entered_once() {
    let folder = tree(&["a.md"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("docs");
    symlink(folder.path(), &link).unwrap();
    let folders = [
        link,
        folder.path().to_path_buf(),
        folder.path().join("../nowhere"),
    ];
    let scan = FolderScan::new(&folders, ScanLimits::default(), &TaskControl::detached()).unwrap();
    assert_eq!(
        (names(&scan), scan.folders.len()),
        (vec!["a.md".to_owned()], 1)
    );
    assert_eq!(scan.missing, [folder.path().join("../nowhere")]);
}

#[test]
fn every_bound_leaves_files_out_and_says_so() {
    let folder = tree(&["a.md", "b.md", "one/c.md", "one/two/d.md"]);
    let all = ScanLimits::default();
    for (limits, expected, incomplete, too_large) in [
        (
            all,
            &["a.md", "b.md", "one/c.md", "one/two/d.md"][..],
            false,
            0,
        ),
        (ScanLimits { files: 2, ..all }, &["a.md", "b.md"], true, 0),
        (
            ScanLimits { depth: 1, ..all },
            &["a.md", "b.md", "one/c.md"],
            true,
            0,
        ),
        (ScanLimits { file: 4, ..all }, &["a.md", "b.md"], false, 2),
        (ScanLimits { total: 9, ..all }, &["a.md", "b.md"], true, 0),
        (
            ScanLimits { entries: 4, ..all },
            &["a.md", "b.md", "one/c.md"],
            true,
            0,
        ),
    ] {
        let scan = scan(folder.path(), limits);
        assert_eq!(
            (names(&scan), scan.incomplete, scan.too_large),
            (
                expected.iter().map(ToString::to_string).collect(),
                incomplete,
                too_large
            )
        );
    }
}

#[test]
fn a_cancelled_scan_stops() {
    let folder = tree(&["a.md"]);
    let watch = TaskControl {
        cancelled: &|| true,
        report: &|_, _| {},
    };
    let result = FolderScan::new(
        &[folder.path().to_path_buf()],
        ScanLimits::default(),
        &watch,
    );
    assert!(matches!(result, Err(DocumentsError::Cancelled)));
}
