//! `toolgate read URI`: prints a resource, or writes it to a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use toolgate_core::text::escape;

use super::request::{ContentCommand, ContentTarget};
use crate::cli::{GlobalOptions, ReadOptions};
use crate::content_text::{binary_description, for_terminal, shown_size};
use crate::exit::Exit;
use crate::{output, wrap};

// Bytes of a file name that a server chose.
const MAX_NAME_LEN: usize = 100;

pub(crate) fn run(global: &GlobalOptions, options: &ReadOptions) -> anyhow::Result<Exit> {
    let output = options.output.clone();
    let command = ContentCommand {
        wanted: ContentTarget::Resource(&options.uri),
        command: "toolgate read",
        json: options.json,
        call: &options.call,
        show: Box::new(move |result| write_parts(&Part::all(result)?, output.as_deref())),
    };
    command.run(global)
}

/// One of the contents of a resource.
#[derive(Debug, PartialEq)]
struct Part {
    uri: String,
    mime: Option<String>,
    content: PartContent,
}

#[derive(Debug, PartialEq)]
enum PartContent {
    Text(String),
    Binary(Vec<u8>),
}

impl Part {
    fn all(result: &Value) -> anyhow::Result<Vec<Self>> {
        let contents = result["contents"].as_array().into_iter().flatten();
        contents.map(Self::from_json).collect()
    }

    fn from_json(content: &Value) -> anyhow::Result<Self> {
        let text = |key: &str| content[key].as_str();
        let uri = text("uri").unwrap_or_default().to_owned();
        let inner = match (text("text"), text("blob")) {
            (Some(text), _) => PartContent::Text(text.to_owned()),
            (None, Some(data)) => {
                let bytes = BASE64_STANDARD.decode(data.trim());
                PartContent::Binary(bytes.with_context(|| {
                    format!("the server sent '{}' in a wrong encoding", escape(&uri))
                })?)
            }
            (None, None) => bail!(
                "the server sent neither text nor data of '{}'",
                escape(&uri)
            ),
        };
        Ok(Self {
            uri,
            mime: text("mimeType").map(str::to_owned),
            content: inner,
        })
    }

    fn bytes(&self) -> &[u8] {
        match &self.content {
            PartContent::Text(text) => text.as_bytes(),
            PartContent::Binary(bytes) => bytes,
        }
    }

    fn is_binary(&self) -> bool {
        matches!(self.content, PartContent::Binary(_))
    }

    fn binary_description(&self) -> String {
        binary_description(self.mime.as_deref(), self.bytes().len() as u64)
    }
}

fn write_parts(parts: &[Part], output: Option<&Path>) -> anyhow::Result<Exit> {
    match output {
        Some(path) => save(parts, path)?,
        None if output::stdout_is_terminal() => return Ok(show_to_person(parts)),
        None => output::print_bytes(&piped(parts)?),
    }
    Ok(Exit::Success)
}

fn show_to_person(parts: &[Part]) -> Exit {
    if let [only] = parts {
        return match &only.content {
            PartContent::Text(text) => {
                output::print_result(for_terminal(text).trim_end_matches('\n'));
                Exit::Success
            }
            PartContent::Binary(_) => Exit::failure(format!(
                "this is binary ({}); --output FILE writes it to a file",
                only.binary_description()
            )),
        };
    }
    if parts.is_empty() {
        output::print_note("the resource is empty");
    }
    let bold = anstyle::Style::new().bold();
    let shown = parts.iter().map(|part| {
        let uri = escape(&part.uri);
        let inner = match &part.content {
            PartContent::Text(text) => for_terminal(text).trim_end_matches('\n').to_owned(),
            PartContent::Binary(_) => format!(
                "({}; --output FOLDER writes each part to a file)",
                part.binary_description()
            ),
        };
        format!("{bold}{uri}{bold:#}\n{inner}")
    });
    let shown: Vec<_> = shown.collect();
    if !shown.is_empty() {
        output::print_result(&shown.join("\n\n"));
    }
    Exit::Success
}

/// The bytes for another program: those of a single part as they are, several texts
/// one after the other.
fn piped(parts: &[Part]) -> anyhow::Result<Vec<u8>> {
    if let [only] = parts {
        return Ok(only.bytes().to_owned());
    }
    if parts.iter().any(Part::is_binary) {
        bail!(
            "the resource has {} parts, some of them binary; --output FOLDER writes each to a file, --json prints them all",
            parts.len()
        );
    }
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(part.bytes());
        if !part.bytes().ends_with(b"\n") {
            bytes.push(b'\n');
        }
    }
    Ok(bytes)
}

fn save(parts: &[Part], path: &Path) -> anyhow::Result<()> {
    let shown = |path: &Path| escape(&path.to_string_lossy());
    let written = match parts {
        _ if path.is_dir() => save_each(parts, path)?,
        [only] => {
            std::fs::write(path, only.bytes())
                .with_context(|| format!("cannot write {}", shown(path)))?;
            vec![path.to_owned()]
        }
        _ => bail!(
            "the resource has {}; give --output a folder that exists",
            wrap::pluralize(parts.len(), "part")
        ),
    };
    for (part, path) in parts.iter().zip(written) {
        let size = shown_size(part.bytes().len() as u64);
        output::print_note(&format!("wrote {size} to {}", shown(&path)));
    }
    Ok(())
}

/// Writes each part to a new file. The names come from a server, so no existing file is replaced.
fn save_each(parts: &[Part], folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written: Vec<PathBuf> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut path = folder.join(file_name(&part.uri));
        if written.contains(&path) {
            path = folder.join(format!("{}-{}", index + 1, file_name(&part.uri)));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(part.bytes()))
            .with_context(|| format!("cannot write {}", escape(&path.to_string_lossy())))?;
        written.push(path);
    }
    Ok(written)
}

/// The last part of the address as a plain file name.
fn file_name(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit(['/', ':']).next();
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = last.unwrap_or_default().chars().map(plain).collect();
    let name = name.trim_start_matches(['.', '-']);
    match name.get(..name.len().min(MAX_NAME_LEN)) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "resource".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(contents: &Value) -> Vec<Part> {
        Part::all(&json!({ "contents": contents })).unwrap()
    }

    #[test]
    fn a_pipe_gets_the_bytes_of_a_part_unchanged() {
        let text = parts(&json!([{ "uri": "a:1", "text": "a\u{1b}[2J\r\n" }]));
        assert_eq!(piped(&text).unwrap(), b"a\x1b[2J\r\n");
        let binary = parts(&json!([{ "uri": "a:1", "blob": "/wAA" }]));
        assert_eq!(piped(&binary).unwrap(), [0xff, 0, 0]);
        let texts = parts(&json!([{ "uri": "a:1", "text": "a" }, { "uri": "a:2", "text": "b\n" }]));
        assert_eq!(piped(&texts).unwrap(), b"a\nb\n");
        assert_eq!(piped(&[]).unwrap(), b"");
        let mixed = parts(&json!([{ "uri": "a:1", "text": "a" }, { "uri": "a:2", "blob": "" }]));
        let error = piped(&mixed).unwrap_err().to_string();
        assert!(
            error.contains("2 parts") && error.contains("--output"),
            "{error}"
        );
    }

    #[test]
    fn data_in_a_wrong_encoding_is_an_error() {
        for content in [
            json!({ "uri": "a:1", "blob": "?" }),
            json!({ "uri": "a:1" }),
        ] {
            let error = Part::from_json(&content).unwrap_err().to_string();
            assert!(error.contains("'a:1'"), "{error}");
        }
    }

    #[test]
    fn names_of_files_are_plain() {
        for (uri, expected) in [
            ("file:///home/me/a.txt", "a.txt"),
            ("notes:today", "today"),
            ("file:///a/../..", "resource"),
            ("x://a/.bashrc", "bashrc"),
            ("x://a/b c%2F.png?x=/y#z", "b_c_2F.png"),
            ("x://a/b/", "b"),
            ("", "resource"),
        ] {
            assert_eq!(file_name(uri), expected, "{uri}");
        }
        assert_eq!(
            file_name(&format!("x:{}", "a".repeat(500))).len(),
            MAX_NAME_LEN
        );
    }

    #[test]
    fn several_parts_go_to_files_of_their_own_and_replace_none() {
        let folder = tempfile::tempdir().unwrap();
        let two = parts(&json!([
            { "uri": "x://a/n.txt", "text": "one" },
            { "uri": "x://b/n.txt", "blob": "/w==" },
        ]));
        let error = save(&two, &folder.path().join("file")).unwrap_err();
        assert!(error.to_string().contains("2 parts"), "{error}");
        save(&two, folder.path()).unwrap();
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("n.txt"), read("2-n.txt")),
            (b"one".to_vec(), vec![0xff])
        );
        assert!(save(&two, folder.path()).is_err(), "they are there already");
        save(&two[..1], &folder.path().join("n.txt")).unwrap();
    }
}
