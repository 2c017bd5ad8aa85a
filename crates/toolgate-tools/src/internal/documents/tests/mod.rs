//! Tests document search end to end, with real folders.

mod index;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use toolgate_core::{Schema, SchemaLimits, ToolCall, ToolExecutor, ToolManager};

use super::update::IndexUpdate;
use super::*;
use crate::HandlerRegistry;
use crate::builtin::BuiltinSettings;

struct TestLibrary {
    folder: TempDir,
}

impl TestLibrary {
    fn new(files: &[(&str, &str)]) -> Self {
        let library = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, text) in files {
            library.write(name, text);
        }
        library
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a file an hour old. A file that was written within the clock's
    /// resolution is read again.
    fn backdate(&self, name: &str) {
        let file = fs::File::options()
            .append(true)
            .open(self.folder.path().join(name))
            .unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600))
            .unwrap();
    }

    fn delete(&self, name: &str) {
        fs::remove_file(self.folder.path().join(name)).unwrap();
    }

    fn settings(&self, index: Option<&Path>) -> DocumentsSettings {
        DocumentsSettings {
            folders: vec![self.folder.path().to_path_buf()],
            index: index.map(Path::to_path_buf),
        }
    }

    fn documents(&self) -> Documents {
        Documents::new(self.settings(None))
    }
}

impl Documents {
    async fn search(&self, query: &str) -> Value {
        let query = DocumentQuery::new(query).expect("the query has a word");
        self.answer(query, DEFAULT_RESULTS, || false, |_, _| {})
            .await
            .expect("an answer")
    }

    /// The names of the files found, best first.
    async fn find(&self, query: &str) -> Vec<String> {
        let answer = self.search(query).await;
        let name = |result: &Value| {
            Path::new(result["file"].as_str().unwrap())
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        };
        answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect()
    }

    async fn update_index(&self) -> IndexUpdate {
        self.run_blocking(
            || false,
            |_, _| {},
            |store, scan, watch| store.with(|connection| update(connection, scan, watch)),
        )
        .await
        .unwrap()
    }
}

#[tokio::test]
async fn documents_are_found_by_their_words() {
    let library = TestLibrary::new(&[
        (
            "boiler.md",
            "# The boiler\nIts pressure is 1.5 bar. Vérifier la pression à l'été.",
        ),
        (
            "garden.txt",
            "Water the garden at seven. The boiler is not here.",
        ),
        ("sub/shed-manual.org", "Überwintern der Geräte"),
    ]);
    let documents = library.documents();
    for (query, expected) in [
        ("pressure", &["boiler.md"][..]),
        ("boiler", &["boiler.md", "garden.txt"]),
        ("BOILER pressure", &["boiler.md"]),
        ("boiler's", &["boiler.md", "garden.txt"]),
        ("seven boiler", &["garden.txt"]),
        ("press", &["boiler.md"]),
        ("ressure", &[]),
        ("verifier ete", &["boiler.md"]),
        ("uberwintern", &["shed-manual.org"]),
        ("U\u{308}berwintern", &["shed-manual.org"]),
        ("shed", &["shed-manual.org"]),
        ("pressure seven", &["garden.txt", "boiler.md"]),
        ("xylophone pressure", &["boiler.md"]),
        ("xylophone", &[]),
    ] {
        assert_eq!(documents.find(query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn an_answer_shows_file_title_snippet_and_score() {
    let library = TestLibrary::new(&[
        ("boiler.md", "# The boiler\n\nIts pressure\nis 1.5 bar."),
        (
            "other.txt",
            "Much text about many things, and once about pressure among them.",
        ),
    ]);
    let answer = library.documents().search("bar pressure").await;
    let file = fs::canonicalize(library.folder.path())
        .unwrap()
        .join("boiler.md");
    let expected = json!({
        "results": [{
            "file": file, "title": "The boiler", "snippet": "# The boiler Its **pressure** is 1.5 **bar**.", "score": 1.0
        }],
        "total": 1,
        "files_searched": 2
    });
    assert_eq!(answer, expected);
    let both = library.documents().search("pressure").await;
    assert!(
        both["results"][1]["score"].as_f64().unwrap() < 1.0,
        "{both}"
    );
    assert_eq!(both["results"][1]["title"], "other.txt");
}

#[tokio::test]
async fn query_operators_are_treated_as_plain_words() {
    let library = TestLibrary::new(&[("a.md", "a near b c or not body")]);
    let documents = library.documents();
    let long = format!("{}near", "\"".repeat(10_000));
    for query in [
        "\" OR *",
        "NEAR(",
        "NEAR(a b, 5)",
        "a-b:c",
        "body:",
        "{a b}:c",
        "a AND NOT b",
        "^a",
        "a*",
        "a + b",
        "'; DROP TABLE pages; --near",
        "a\0near",
        "\u{0}near",
        "ⓐ near",
        &long,
    ] {
        assert_eq!(documents.find(query).await, ["a.md"], "{query}");
    }
    // Word characters to our tokenizer but not to SQLite's, so they match nothing.
    for query in ["\u{93f}", "ⓐ", "\u{1e900}", "\u{345}x"] {
        assert_eq!(documents.find(query).await, [""; 0], "{query}");
    }
}

#[tokio::test]
async fn skipped_files_are_reported() {
    let library = TestLibrary::new(&[("a.md", "apple"), ("binary.txt", "apple\0")]);
    library.write("huge.txt", "apple ".repeat(1 << 20));
    let mut settings = library.settings(None);
    settings.folders.push("/nowhere/at/all".into());
    let answer = Documents::new(settings).search("apple pear").await;
    assert_eq!(
        (&answer["total"], &answer["files_searched"]),
        (&json!(1), &json!(1))
    );
    let expected = json!([
        "No document has all of the words; these have some of them.",
        "Not searched: can't read folder '/nowhere/at/all'.",
        "Not searched: 1 file (too large).",
        "Not searched: 1 file (binary)."
    ]);
    assert_eq!(answer["notes"], expected);
}

#[tokio::test]
async fn without_a_folder_the_error_says_what_to_do() {
    for (folders, expected) in [
        (
            &[][..],
            "no folder is configured; set documents.folders in the configuration",
        ),
        (
            &["/nowhere/a"],
            "can't read folder '/nowhere/a'; correct documents.folders in the configuration",
        ),
        (
            &["/nowhere/a", "/nowhere/b"],
            "can't read folders '/nowhere/a', '/nowhere/b'; correct documents.folders in the configuration",
        ),
    ] {
        let settings = DocumentsSettings {
            folders: folders.iter().map(PathBuf::from).collect(),
            index: None,
        };
        assert_eq!(
            Documents::new(settings)
                .refresh()
                .await
                .unwrap_err()
                .to_string(),
            expected
        );
    }
}

#[test]
fn unknown_or_invalid_settings_are_rejected() {
    let parse =
        |text| serde_json::from_str::<DocumentsSettings>(text).map_err(|error| error.to_string());
    assert_eq!(parse("{}"), Ok(DocumentsSettings::default()));
    assert_eq!(
        parse(r#"{"folders": ["/a"]}"#).unwrap().folders,
        [Path::new("/a")]
    );
    for refused in [
        r#"{"folder": []}"#,
        r#"{"index": "/etc/passwd"}"#,
        r#"{"folders": "/a"}"#,
    ] {
        assert!(parse(refused).is_err(), "{refused}");
    }
}

#[test]
fn max_results_is_a_whole_number_within_bounds() {
    let schema = Schema::compile(Documents::parameters(), &SchemaLimits::default()).unwrap();
    for (given, expected) in [
        (json!({}), Some(5)),
        (json!({ "max_results": 1 }), Some(1)),
        (json!({ "max_results": 3.0 }), Some(3)),
        (json!({ "max_results": null }), Some(5)),
        (json!({ "max_results": 0 }), None),
        (json!({ "max_results": -1e300 }), None),
        (json!({ "max_results": 1_000_000 }), None),
        (json!({ "max_results": 2.5 }), None),
        (json!({ "max_results": "2" }), None),
    ] {
        let mut arguments = given.clone();
        arguments["query"] = json!("x");
        let parsed = schema
            .check(arguments)
            .and_then(|valid| valid.parse::<DocumentArguments>());
        assert_eq!(
            parsed.ok().map(|asked| asked.max_results),
            expected,
            "{given}"
        );
    }
}

/// An executor for the service, behind a definition with its own schema, as in a configuration.
fn executor(documents: Documents, parameters: &Value) -> ToolExecutor {
    let mut handlers = HandlerRegistry::new(&BuiltinSettings::default());
    handlers.add_service(
        Documents::NAME,
        Documents::parameters(),
        Arc::new(documents),
    );
    let implementation = json!({ "type": "internal", "handler": Documents::NAME });
    let definition = json!({
        "name": "search_documents", "description": "Searches", "parameters": parameters, "implementation": implementation
    });
    let manager = Arc::new(ToolManager::new());
    manager.add_all(handlers.load(&[definition]).tools);
    ToolExecutor::new(manager)
}

#[tokio::test]
async fn calls_return_results_or_a_clear_error() {
    let library = TestLibrary::new(&[("a.md", "apple"), ("b.md", "apple")]);
    let loose = executor(library.documents(), &json!({ "type": "object" }));
    let strict = executor(library.documents(), &Documents::parameters());
    for (arguments, expected) in [
        (json!({ "query": "apple" }), Ok(2)),
        (json!({ "query": "apple", "max_results": 1 }), Ok(1)),
        (json!({ "query": "apple", "max_results": 1.0 }), Ok(1)),
        (
            json!({ "query": "?!" }),
            Err("Invalid parameters: 'query' must contain at least one word"),
        ),
        (
            json!({ "query": 5 }),
            Err("Invalid parameters: 'query' must be string"),
        ),
        (
            json!({ "query": "a", "max_results": "many" }),
            Err("Invalid parameters: 'max_results' must be integer"),
        ),
    ] {
        for executor in [&loose, &strict] {
            let envelope = executor
                .execute(ToolCall::new("search_documents", arguments.clone()))
                .await
                .to_envelope();
            let found = envelope["result"]["results"].as_array().map(Vec::len);
            assert_eq!(
                found.ok_or(envelope["error"].as_str().unwrap_or_default()),
                expected,
                "{arguments}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_without_folders_is_unavailable() {
    let executor = executor(
        Documents::new(DocumentsSettings::default()),
        &Documents::parameters(),
    );
    let outcome = executor
        .execute(ToolCall::new(
            "search_documents",
            json!({ "query": "apple" }),
        ))
        .await;
    let envelope = outcome.to_envelope();
    let expected = "The search_documents service is currently unavailable: no folder is configured; set documents.folders in the configuration";
    assert_eq!(
        (&envelope["error"], &envelope["error_kind"]),
        (&json!(expected), &json!("unavailable"))
    );
}

#[tokio::test]
async fn indexing_progress_is_reported_to_the_caller() {
    let library = TestLibrary::new(&[("a.md", "apple")]);
    let received = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    let call = ToolCall::new("search_documents", json!({ "query": "apple" }))
        .on_progress(move |progress| sink.lock().push(progress.clone()));
    assert!(
        executor(library.documents(), &Documents::parameters())
            .execute(call)
            .await
            .is_success()
    );
    let message = Some("indexing documents: 1 of 1".to_owned());
    assert_eq!(
        *received.lock(),
        [Progress {
            done: 1.0,
            total: Some(1.0),
            message,
            meta: None,
        }]
    );
}
