use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use toolgate_core::ToolPattern;

use super::files::MAX_ENTRIES;
use super::*;
use crate::{SecretHeaders, ServerConnection, ServerProgram};

fn server(name: &str, entry: &Value) -> ServerSettings {
    let program = ServerConnection::Stdio(ServerProgram::default());
    ServerSettings::new(name, program).with_identity(entry, Path::new("/house"))
}

fn house() -> ServerSettings {
    server("house", &json!({ "command": "house-mcp" }))
}

fn lamp(description: &str) -> Value {
    json!({ "name": "lamp", "description": description, "inputSchema": { "type": "object" } })
}

fn catalog() -> (ToolCatalog, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("state/catalogue");
    (ToolCatalog::new(inside), folder)
}

/// The only file with this extension.
fn file(catalog: &ToolCatalog, extension: &str) -> PathBuf {
    catalog.file_path(&house(), extension).unwrap()
}

fn names(catalog: &ToolCatalog) -> Option<Vec<String>> {
    let remembered = catalog.recall(&house())?;
    let name = |tool: &RememberedTool| tool.definition["name"].as_str().unwrap().to_owned();
    Some(remembered.tools.iter().map(name).collect())
}

#[test]
fn a_list_is_recalled_as_it_was_sent() {
    let (catalog, _folder) = catalog();
    assert!(!catalog.knows(&house()));
    let odd = json!({ "name": "日本 a+b", "title": null, "x-own": [1.0, 1e300], "inputSchema": 5 });
    let listed = [lamp("Switches it"), odd.clone()];
    catalog.remember(&house(), &listed, &ListedContent::default());
    assert_eq!(catalog.recall_names(&house()), names(&catalog));
    let recalled = catalog.recall(&house()).unwrap();
    let definitions: Vec<_> = recalled.tools.iter().map(|tool| &tool.definition).collect();
    assert_eq!(definitions, [&listed[0], &odd]);
    assert!(recalled.listed_at.elapsed().unwrap() < Duration::from_secs(60));
    assert!(catalog.knows(&house()));
    // An empty list is remembered too.
    catalog.remember(&house(), &[], &ListedContent::default());
    assert_eq!(names(&catalog), Some(Vec::new()));
    assert!(!ToolCatalog::default().knows(&house()));
}

#[test]
fn a_tool_was_offered_if_it_is_listed_and_the_settings_take_it() {
    let (catalog, _folder) = catalog();
    assert!(!catalog.lists_tool(&house(), "lamp"));
    let odd = json!({ "name": "日本 \"a\"\n", "inputSchema": { "type": "object" } });
    let plain = json!({ "name": "heater", "inputSchema": { "properties": { "degrees": {} } } });
    catalog.remember(
        &house(),
        &[lamp("Not a \"door\""), odd, plain],
        &ListedContent::default(),
    );
    let named = |name: &str| catalog.lists_tool(&house(), name);
    assert!(named("lamp") && named("heater") && named("日本 \"a\"\n"));
    // Other words of a definition and parts of names don't count as names.
    for other in ["door", "degrees", "object", "house", "lam", ""] {
        assert!(!named(other), "{other}");
    }
    let mut choosy = house();
    choosy.excluded_tools = vec![ToolPattern::new("lamp")];
    assert!(!catalog.lists_tool(&choosy, "lamp") && catalog.lists_tool(&choosy, "heater"));
    fs::write(file(&catalog, LISTED), r#"{"version":9,"tools":["lamp"]}"#).unwrap();
    assert!(!named("lamp"));
}

#[test]
fn equal_definitions_have_equal_hashes_whatever_the_order_of_their_keys() {
    let one = json!({ "name": "a", "inputSchema": { "type": "object", "x": 1 } });
    let same = json!({ "inputSchema": { "x": 1, "type": "object" }, "name": "a" });
    let other = json!({ "name": "a", "inputSchema": { "type": "object", "x": 2 } });
    let hash = |definition: &Value| RememberedTool::new(definition).hash;
    assert_eq!(hash(&one), hash(&same));
    assert_ne!(hash(&one), hash(&other));
    assert_eq!(hash(&one).len(), 64);
}

#[test]
fn identity_depends_on_the_program_not_the_timeout() {
    let entry = json!({ "command": "x", "args": ["${TOKEN}"], "env": { "A": "1", "B": "2" } });
    let identity = |entry: &Value| server("s", entry).identity.unwrap();
    let same = json!({ "env": { "B": "2", "A": "1" }, "command": "x", "args": ["${TOKEN}"],
        "timeout": "5s", "allowedTools": ["a"], "disabled": true, "override": true });
    assert_eq!(identity(&entry), identity(&same));
    for other in [
        json!({ "command": "y", "args": ["${TOKEN}"], "env": { "A": "1", "B": "2" } }),
        json!({ "command": "x", "args": ["${OTHER}"], "env": { "A": "1", "B": "2" } }),
        json!({ "command": "x", "args": ["${TOKEN}"], "env": { "A": "1", "B": "3" } }),
    ] {
        assert_ne!(identity(&entry), identity(&other), "{other}");
    }
    assert_ne!(identity(&entry), server("t", &entry).identity.unwrap());
    // A program's identity includes its folder; an address has none.
    let at = |connection: &ServerConnection, folder: &str| {
        let settings = ServerSettings::new("s", connection.clone());
        settings.with_identity(&entry, Path::new(folder)).identity
    };
    let program = ServerConnection::Stdio(ServerProgram::default());
    let http = ServerConnection::Http {
        url: "http://h/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    assert_ne!(at(&program, "/a"), at(&program, "/b"));
    assert_eq!(at(&http, "/a"), at(&http, "/b"));
}

#[test]
fn a_server_without_an_identity_is_not_remembered() {
    let (catalog, folder) = catalog();
    let nameless = ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()));
    catalog.remember(&nameless, &[lamp("x")], &ListedContent::default());
    catalog.remember_failure(&nameless, "x");
    assert!(!catalog.knows(&nameless) && catalog.last_failure(&nameless).is_none());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn corrupt_files_are_ignored_and_replaced() {
    let (catalog, _folder) = catalog();
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    let path = file(&catalog, LISTED);
    let whole = fs::read(&path).unwrap();
    let many = json!({ "version": 1, "server": "house", "tools": vec![json!({ "hash": "", "definition": {} }); 1001] });
    let deep = format!(
        r#"{{"version":1,"server":"house","tools":[{{"hash":"","definition":{}}}]}}"#,
        "[".repeat(100_000)
    );
    for bytes in [
        &whole[..whole.len() / 2],
        b"",
        b"\0\0\0\0",
        b"{}",
        br#"{"version":1}"#,
        br#"{"version":1,"server":"house","tools":[5]}"#,
        br#"{"version":2,"server":"house","tools":"of another kind"}"#,
        br#"{"version":3,"server":"house","tools":[]}"#,
        many.to_string().as_bytes(),
        deep.as_bytes(),
    ] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(names(&catalog), None);
        let has_names = catalog
            .recall_names(&house())
            .is_some_and(|names| !names.is_empty());
        assert!(!has_names);
        catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
        assert_eq!(names(&catalog).unwrap(), ["lamp"]);
    }
    // Too large to be ours, so it isn't read.
    File::create(&path)
        .unwrap()
        .set_len(MAX_FILE_BYTES + 1)
        .unwrap();
    assert_eq!(names(&catalog), None);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(names(&catalog), None);
}

#[test]
fn files_are_private_and_leave_no_temporaries() {
    let (catalog, _folder) = catalog();
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    let path = file(&catalog, LISTED);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = path.parent().unwrap();
    assert_eq!((mode(&path), mode(folder)), (0o600, 0o700));
    assert_eq!(mode(&file(&catalog, AGREED)), 0o600);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
}

#[test]
fn the_same_list_again_is_only_confirmed() {
    let (catalog, _folder) = catalog();
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    let path = file(&catalog, LISTED);
    let long_ago = SystemTime::now() - Duration::from_secs(5000);
    let open = File::options().append(true).open(&path).unwrap();
    open.set_modified(long_ago).unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&path);
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    assert_eq!(inode(&path), before, "it was not written again");
    let age = catalog.recall(&house()).unwrap().listed_at.elapsed();
    assert!(age.unwrap() < Duration::from_secs(1000));
    catalog.remember(&house(), &[lamp("y")], &ListedContent::default());
    assert_ne!(inode(&path), before);
}

#[test]
fn readers_see_a_whole_list_while_many_write() {
    let (catalog, _folder) = catalog();
    let lists: Vec<Vec<Value>> = (1..5)
        .map(|count| vec![lamp(&"x".repeat(50_000)); count])
        .collect();
    catalog.remember(&house(), &lists[0], &ListedContent::default());
    let begin = Barrier::new(lists.len() + 1);
    std::thread::scope(|scope| {
        let writers: Vec<_> = lists
            .iter()
            .map(|list| {
                scope.spawn(|| {
                    begin.wait();
                    (0..20).for_each(|_| {
                        catalog.remember(&house(), list, &ListedContent::default());
                    });
                })
            })
            .collect();
        begin.wait();
        while !writers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            let count = names(&catalog).map(|names| names.len());
            assert!((1..5).contains(&count.unwrap()), "{count:?}");
        }
    });
    let folder = file(&catalog, LISTED).parent().unwrap().to_owned();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
}

#[test]
fn a_failure_is_remembered_until_the_server_lists_its_tools() {
    let (catalog, _folder) = catalog();
    assert_eq!(catalog.last_failure(&house()), None);
    catalog.remember_failure(&house(), &format!("no broker{}", "é".repeat(10_000)));
    let failure = catalog.last_failure(&house()).unwrap();
    assert!(failure.reason.starts_with("no brokeré") && failure.reason.len() <= 4096);
    assert!(failure.at.elapsed().unwrap() < Duration::from_secs(60));
    assert!(!catalog.knows(&house()));
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    assert_eq!(catalog.last_failure(&house()), None);
    catalog.remember_failure(&house(), "gone");
    assert!(catalog.knows(&house()), "its tools stay known");
}

#[test]
fn old_and_unfinished_files_are_pruned() {
    let (catalog, _folder) = catalog();
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    let path = file(&catalog, LISTED);
    let folder = path.parent().unwrap();
    let now = SystemTime::now();
    let put = |name: &str, age: Duration| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(now - age).unwrap();
    };
    let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
    put("old.json", 181 * day);
    put("old.failed", 181 * day);
    put("old.agreed", 181 * day);
    put("young.json", 179 * day);
    put("killed.new", 2 * hour);
    put("writing.new", hour / 2);
    put("of a person.txt", 1000 * day);
    prune(folder, now);
    let left = || {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| !name.starts_with(path.file_stem().unwrap().to_str().unwrap()))
            .collect();
        names.sort();
        names
    };
    assert_eq!(left(), ["of a person.txt", "writing.new", "young.json"]);
    for number in 0..MAX_ENTRIES {
        put(&format!("{number}.json"), Duration::ZERO);
    }
    prune(folder, now);
    assert!(!left().contains(&"young.json".to_owned()));
    assert!(left().len() <= MAX_ENTRIES + 1);
}

/// The agreed names; `None` before the first list.
fn agreed(catalog: &ToolCatalog) -> Option<Vec<String>> {
    let agreed = catalog.agreement(&house())?;
    let name = |tool: &RememberedTool| tool.definition["description"].to_string();
    Some(agreed.iter().map(name).collect())
}

#[test]
fn a_file_from_before_agreements_is_taken_as_agreed_to() {
    let (catalog, _folder) = catalog();
    catalog.remember(&house(), &[lamp("old")], &ListedContent::default());
    fs::remove_file(file(&catalog, AGREED)).unwrap();
    let path = file(&catalog, LISTED);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\":2", "\"version\":1")).unwrap();
    assert_eq!(agreed(&catalog).unwrap(), ["\"old\""]);
    catalog.remember(&house(), &[lamp("new")], &ListedContent::default());
    assert_eq!(agreed(&catalog).unwrap(), ["\"old\""]);
    assert!(fs::read_to_string(&path).unwrap().contains("\"version\":2"));
}

#[test]
fn a_corrupt_or_missing_agreement_agrees_to_nothing() {
    let (catalog, _folder) = catalog();
    assert_eq!(agreed(&catalog), None);
    catalog.remember(&house(), &[], &ListedContent::default());
    assert_eq!(agreed(&catalog), None, "nothing was listed");
    catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
    let path = file(&catalog, AGREED);
    let whole = fs::read(&path).unwrap();
    for bytes in [&whole[..whole.len() / 2], b"", b"{}", b"\0\0"] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(agreed(&catalog).unwrap(), [""; 0]);
        catalog.remember(&house(), &[lamp("x")], &ListedContent::default());
        assert_eq!(agreed(&catalog).unwrap(), [""; 0], "a list mends nothing");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(agreed(&catalog).unwrap(), [""; 0]);
    catalog.remember(&house(), &[lamp("y")], &ListedContent::default());
    assert_eq!(agreed(&catalog).unwrap(), [""; 0]);
    let tools = vec![RememberedTool::new(&lamp("z"))];
    catalog.agree(&house(), tools).unwrap();
    assert_eq!(agreed(&catalog).unwrap(), ["\"z\""]);
}
