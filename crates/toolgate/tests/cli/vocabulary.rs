//! Holds the code and the documentation to the rules for names and wording in CONTRIBUTING.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Private helpers of one small module: their module says what they are.
const PRIVATE_HELPERS: [&str; 2] = ["Inner", "State"];

/// Types with one definition per operating system, of which a build has only one.
const PER_SYSTEM: [&str; 3] = ["KernelSupport", "ProcessHandle", "SystemKeyring"];

/// Adjectives that end like participles, and nouns that do.
const NOT_PARTICIPLES: [&str; 4] = ["Embed", "Feed", "Shared", "Speed"];

/// Irregular participles. The regular ones end in "ed".
const PARTICIPLES: [&str; 20] = [
    "Begun", "Built", "Came", "Chosen", "Cut", "Done", "Found", "Given", "Heard", "Held", "Kept",
    "Known", "Left", "Made", "Said", "Seen", "Sent", "Spoken", "Told", "Written",
];

/// Wordings that a reader of English stops at, and what to write.
const WORDINGS: [(&str, &str); 14] = [
    ("all the same", "still, or nevertheless"),
    ("anew", "again"),
    ("also when", "even when"),
    ("can not", "cannot, or can't to people"),
    ("come to an end", "end"),
    ("engine of speech", "speech engine"),
    ("engines of speech", "speech engines"),
    ("for keeps", "say who owns it"),
    ("inside of", "in"),
    ("makes speech of", "speaks"),
    ("makes text of", "transcribes"),
    ("of its own accord", "by itself"),
    ("to be had", "available"),
    ("what came of it", "the outcome"),
];

#[test]
fn type_names_are_unique_in_their_crate() {
    let mut repeated = Vec::new();
    for folder in crates() {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in sources(&folder.join("src")) {
            for name in type_names(&read(&file)) {
                places.entry(name).or_default().push(shown(&file));
            }
        }
        let is_exempt = |name: &str| PRIVATE_HELPERS.contains(&name) || PER_SYSTEM.contains(&name);
        places.retain(|name, at| at.len() > 1 && !is_exempt(name));
        repeated.extend(places);
    }
    assert!(repeated.is_empty(), "{repeated:#?}");
}

#[test]
fn no_type_is_named_by_a_participle() {
    let mut named = Vec::new();
    for file in crates()
        .iter()
        .flat_map(|folder| sources(&folder.join("src")))
    {
        for name in type_names(&read(&file)) {
            let one_word = !name[1..].contains(|c: char| c.is_ascii_uppercase());
            let regular = name.ends_with("ed") && !NOT_PARTICIPLES.contains(&name.as_str());
            if one_word && (regular || PARTICIPLES.contains(&name.as_str())) {
                named.push(format!("{name} in {}", shown(&file)));
            }
        }
    }
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn code_and_documentation_avoid_strange_wordings() {
    let mut found = Vec::new();
    let code = crates().into_iter().flat_map(|folder| rust_files(&folder));
    let code = code.filter(|path| !path.ends_with("vocabulary.rs"));
    for file in code.chain(pages()) {
        for (number, line) in (1..).zip(read(&file).lines()) {
            let line = line.to_lowercase();
            for (wording, instead) in WORDINGS {
                if has_words(&line, wording) {
                    let place = format!("{}:{number}", shown(&file));
                    found.push(format!("{place}: '{wording}'; write {instead}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn forbidden_wordings_and_names_are_recognized() {
    let source = "pub(crate) struct Told;\n  enum ToolError {\n// struct Comment\ntype Alias = u8;";
    assert_eq!(type_names(source), ["Told", "ToolError"]);
    assert!(has_words("it can not be read", "can not"));
    assert!(has_words("begin anew", "anew"));
    assert!(!has_words("beside of a new one, a canvas", "anew"));
}

/// The crates of the program; the doubles for tests are named after what they play.
fn crates() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let own = |folder: &PathBuf| {
        let name = folder.file_name().unwrap().to_string_lossy();
        !name.starts_with("fake") && name != "thirdparty"
    };
    folders.filter(own).collect()
}

fn pages() -> impl Iterator<Item = PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let markdown = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let front = ["CHANGELOG.md", "README.md", "SECURITY.md"];
    markdown.chain(front.map(|name| root().join(name)))
}

/// The `.rs` files below a folder that aren't tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = rust_files(folder);
    files.retain(|path| {
        let inner = path.strip_prefix(folder).unwrap_or(path);
        let is_test = inner.iter().any(|part| part == "tests");
        !is_test && !path.to_string_lossy().ends_with("tests.rs")
    });
    files
}

/// All `.rs` files below a folder, tests and examples included.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
    files
}

/// The structs, enums, traits and unions that a source defines outside its tests.
fn type_names(source: &str) -> Vec<String> {
    let lines = source.lines().map(str::trim_start);
    let code = lines.take_while(|line| !line.starts_with("mod tests {"));
    code.filter_map(|line| {
        let line = match line.strip_prefix("pub") {
            Some(rest) => rest.split_once(' ')?.1,
            None => line,
        };
        let (keyword, rest) = line.split_once(' ')?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        let is_type = matches!(keyword, "struct" | "enum" | "trait" | "union");
        (is_type && name.starts_with(|c: char| c.is_ascii_uppercase())).then(|| name.to_owned())
    })
    .collect()
}

/// Whether these words are in the text, as whole words.
fn has_words(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn shown(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.display().to_string()
}
