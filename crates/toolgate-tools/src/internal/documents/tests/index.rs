//! The index over time: changing files, index files, damage, and several services on one file.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use super::*;

#[tokio::test]
async fn a_search_sees_what_changed_since_the_last() {
    let library = TestLibrary::new(&[("a.md", "apple"), ("b.md", "banana")]);
    let documents = library.documents();
    assert_eq!(documents.find("apple").await, ["a.md"]);

    library.write("a.md", "grape");
    library.write("c.md", "apple tart");
    library.delete("b.md");
    assert_eq!(documents.find("grape").await, ["a.md"]);
    assert_eq!(documents.find("apple").await, ["c.md"]);
    assert_eq!(documents.find("banana").await, [""; 0]);

    library.write("c.md", "now\0binary");
    assert_eq!(documents.find("apple").await, [""; 0]);
    library.write("c.md", "apple again");
    assert_eq!(documents.find("apple").await, ["c.md"]);
}

#[tokio::test]
async fn only_what_changed_is_read_and_only_a_new_text_is_written() {
    let library = TestLibrary::new(&[("old.md", "one"), ("young.md", "two"), ("binary.md", "\0")]);
    library.backdate("old.md");
    library.backdate("binary.md");
    let documents = library.documents();
    let update = |read, written, removed| IndexUpdate {
        read,
        written,
        removed,
        binary: 1,
        unreadable: 0,
    };
    assert_eq!(documents.update_index().await, update(3, 2, 0));
    // A file this young could have changed within the same tick of the file system's clock.
    assert_eq!(documents.update_index().await, update(1, 0, 0));
    library.backdate("young.md");
    assert_eq!(documents.update_index().await, update(1, 0, 0));
    assert_eq!(documents.update_index().await, update(0, 0, 0));
    library.write("old.md", "new");
    library.delete("young.md");
    assert_eq!(documents.update_index().await, update(1, 1, 1));
}

#[tokio::test]
async fn an_index_file_serves_the_next_process_and_nobody_else() {
    let library = TestLibrary::new(&[("a.md", "apple")]);
    library.backdate("a.md");
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("new/folder/documents.db");
    let open = || Documents::new(library.settings(Some(&file)));
    assert_eq!(open().update_index().await.read, 1);
    assert_eq!(open().update_index().await.read, 0);
    assert_eq!(open().find("apple").await, ["a.md"]);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_file_that_is_not_an_index_is_recreated() {
    let library = TestLibrary::new(&[("a.md", "apple")]);
    let cache = tempfile::tempdir().unwrap();
    let foreign = cache.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE files (id INTEGER); PRAGMA user_version = 1")
        .unwrap();
    let text = cache.path().join("text.db");
    fs::write(&text, "this is not a database ".repeat(1000)).unwrap();
    let empty = cache.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    for file in [foreign, text, empty] {
        let documents = Documents::new(library.settings(Some(&file)));
        assert_eq!(documents.find("apple").await, ["a.md"], "{file:?}");
        drop(documents);
        let application: i32 = Connection::open(&file)
            .unwrap()
            .pragma_query_value(None, "application_id", |row| row.get(0))
            .unwrap();
        assert_ne!(application, 0, "{file:?}");
    }
}

#[tokio::test]
async fn an_index_damaged_while_in_use_is_recreated() {
    let text = (0..20_000).map(|n| format!("word{n} ")).collect::<String>();
    let library = TestLibrary::new(&[("a.md", &text), ("b.md", "apple")]);
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("documents.db");
    Documents::new(library.settings(Some(&file)))
        .refresh()
        .await
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    assert!(bytes.len() > 100_000);
    bytes[4096..].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    assert_eq!(
        Documents::new(library.settings(Some(&file)))
            .find("apple")
            .await,
        ["b.md"]
    );
    let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let index = Connection::open(&file).unwrap();
    assert_eq!(
        index
            .query_row("PRAGMA integrity_check", [], check)
            .unwrap(),
        "ok"
    );
}

#[tokio::test]
async fn an_unwritable_index_is_kept_in_memory() {
    let library = TestLibrary::new(&[("a.md", "apple")]);
    let documents = Documents::new(library.settings(Some(library.folder.path())));
    assert_eq!(documents.find("apple").await, ["a.md"]);
    assert!(library.folder.path().join("a.md").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_services_on_one_new_index_work_at_once() {
    let library = TestLibrary::new(&[]);
    for n in 0..600 {
        library.write(&format!("{n}.md"), format!("apple number{n}"));
    }
    let cache = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let file = cache.path().join(format!("{round}.db"));
        let one = Arc::new(Documents::new(library.settings(Some(&file))));
        let two = Arc::new(Documents::new(library.settings(Some(&file))));
        let ask = |documents: &Arc<Documents>| {
            let documents = Arc::clone(documents);
            tokio::spawn(async move { documents.search("apple").await })
        };
        for answer in [ask(&one), ask(&two), ask(&one), ask(&two)] {
            assert_eq!(answer.await.unwrap()["total"], 600);
        }
        // An in-memory index would hide that one of them could not open the file.
        assert!(!one.store.lock().await.is_in_memory() && !two.store.lock().await.is_in_memory());
    }
}

#[tokio::test]
async fn services_with_other_folders_share_an_index_without_seeing_each_other() {
    let (mine, theirs) = (
        TestLibrary::new(&[("mine.md", "apple")]),
        TestLibrary::new(&[("theirs.md", "apple")]),
    );
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("documents.db");
    let (one, two) = (
        Documents::new(mine.settings(Some(&file))),
        Documents::new(theirs.settings(Some(&file))),
    );
    for _ in 0..2 {
        assert_eq!(one.find("apple").await, ["mine.md"]);
        assert_eq!(two.find("apple").await, ["theirs.md"]);
        assert_eq!(
            one.update_index().await.removed + two.update_index().await.removed,
            0
        );
    }
}

#[tokio::test]
async fn an_unused_folder_is_removed_from_the_index() {
    let (mine, theirs) = (
        TestLibrary::new(&[("mine.md", "apple")]),
        TestLibrary::new(&[("theirs.md", "apple")]),
    );
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("documents.db");
    Documents::new(theirs.settings(Some(&file)))
        .refresh()
        .await
        .unwrap();
    let index = Connection::open(&file).unwrap();
    let pages = || {
        index
            .query_row("SELECT count(*) FROM pages", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(pages(), 1);
    index
        .execute_batch("UPDATE folders SET used = used - 31 * 24 * 3600")
        .unwrap();
    Documents::new(mine.settings(Some(&file)))
        .refresh()
        .await
        .unwrap();
    assert_eq!(pages(), 1);
    let folders: i64 = index
        .query_row("SELECT count(*) FROM folders", [], |row| row.get(0))
        .unwrap();
    assert_eq!(folders, 1);
}

#[tokio::test]
async fn indexing_reports_progress_and_resumes_after_a_cancellation() {
    let library = TestLibrary::new(&[]);
    for n in 0..600 {
        library.write(&format!("{n:03}.md"), "apple");
        library.backdate(&format!("{n:03}.md"));
    }
    let documents = library.documents();
    let reports = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (sink, received) = (Arc::clone(&reports), Arc::clone(&reports));
    let cancelled = move || !received.lock().is_empty();
    let report = move |done, total| sink.lock().push((done, total));
    let result = documents
        .run_blocking(cancelled, report, |store, scan, watch| {
            store.with(|connection| update(connection, scan, watch))
        })
        .await;
    assert!(
        matches!(result, Err(DocumentsError::Cancelled)),
        "{result:?}"
    );
    assert_eq!(*reports.lock(), [(256, 600)]);
    assert_eq!(documents.update_index().await.read, 344);
}
