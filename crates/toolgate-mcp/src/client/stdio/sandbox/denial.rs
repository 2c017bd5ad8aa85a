//! Recognizes sandbox denials in stderr, and advises what to do about them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::variables;
use super::places;
use crate::{SandboxLevel, ServerProgram, ServerSettings};

const DENIED: [&str; 2] = ["EACCES", "ermission denied"];
const WRITING: [&str; 8] = [
    "mkdir", "write", "create", "unlink", "rename", "remove", "touch", "copyfile",
];

/// Returns advice if the last denial in stderr may come from the sandbox.
pub(crate) fn find_advice(
    settings: &ServerSettings,
    program: &ServerProgram,
    stderr: &[String],
) -> Option<String> {
    let level = match settings.sandbox.level {
        SandboxLevel::Off => return None,
        SandboxLevel::Default => "default",
        SandboxLevel::Strict => "strict",
    };
    let mut lines = stderr.iter().rev();
    let line = lines.find(|line| DENIED.iter().any(|words| line.contains(words)))?;
    let Some(path) = path_in(line) else {
        return (level == "strict").then(|| match line.contains("connect") {
            true => "its sandbox allows only the ports that it lists: add the port to 'ports' in its 'sandbox'".to_owned(),
            false => "its sandbox may have denied this: list what the server needs under 'read', 'write' and 'ports' of its 'sandbox'".to_owned(),
        });
    };
    let home = places::folder(&variables(program), "HOME");
    let is_secret = places::secrets(home.as_deref())
        .iter()
        .any(|secret| is_in(&path, secret));
    let is_written = WRITING.iter().any(|word| line.contains(word));
    let key = match is_secret || (level == "strict" && !is_written) {
        true => "read",
        false => "write",
    };
    let what = match is_secret {
        true => "where secrets are stored, and its sandbox blocks that",
        false => "which its sandbox may block",
    };
    let shown = path.display().to_string();
    let entry = json!({ "level": level, key: [shown] });
    Some(format!(
        "it was denied access to {shown}, {what}; if it needs access: \"sandbox\": {entry}"
    ))
}

fn is_in(path: &Path, secret: &str) -> bool {
    match secret.strip_suffix('*') {
        Some(beginning) => path.to_string_lossy().starts_with(beginning),
        None => path.starts_with(secret),
    }
}

/// Returns the last absolute path in a line, which is quoted or ends at a blank. The first one may
/// be the program that reports the error.
fn path_in(line: &str) -> Option<PathBuf> {
    let starts = line.char_indices().rev().filter(|(_, c)| *c == '/');
    for (at, _) in starts {
        let before = line[..at].chars().next_back();
        let rest = &line[at..];
        let end = match before {
            Some(quote @ ('\'' | '"' | '`')) => rest.find(quote),
            None | Some(' ' | '(' | '[' | '=' | ':') => Some(
                rest.find([' ', ',', ')', ']', '\'', '"'])
                    .unwrap_or(rest.len()),
            ),
            Some(_) => None,
        };
        let Some(end) = end else { continue };
        let path = rest[..end].trim_end_matches([':', ';', '.', ',']);
        // `//` is part of a URL, and a lone `/` separates two words.
        if path.len() > 1 && !path.starts_with("//") {
            return Some(PathBuf::from(path));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SandboxSettings, ServerConnection};

    fn advice_on(level: SandboxLevel, line: &str) -> Option<String> {
        let program = ServerProgram {
            env: [("HOME".to_owned(), "/home/ada".to_owned())].into(),
            ..ServerProgram::default()
        };
        let mut settings = ServerSettings::new("files", ServerConnection::Stdio(program.clone()));
        settings.sandbox = SandboxSettings {
            level,
            ..SandboxSettings::default()
        };
        let stderr = [
            "Error".to_owned(),
            line.to_owned(),
            "    at x.js:1".to_owned(),
        ];
        find_advice(&settings, &program, &stderr)
    }

    #[test]
    fn a_denial_names_the_place_and_the_key_that_opens_it() {
        use SandboxLevel::{Default, Off, Strict};
        let secret = r#"it was denied access to /home/ada/.ssh/id_rsa, where secrets are stored, and its sandbox blocks that; if it needs access: "sandbox": {"level":"default","read":["/home/ada/.ssh/id_rsa"]}"#;
        for (level, line, expected) in [
            (
                Default,
                "Error: EACCES: permission denied, open '/home/ada/.ssh/id_rsa'",
                Some(secret),
            ),
            (
                Default,
                "/usr/bin/cat: /home/ada/.ssh/id_rsa: Permission denied",
                Some(secret),
            ),
            (
                Default,
                "PermissionError: [Errno 13] Permission denied: '/home/ada/my notes.db'",
                Some(r#""write":["/home/ada/my notes.db"]"#),
            ),
            (
                Default,
                "open /home/ada/.npmrc.bak: permission denied",
                Some(r#""read":["/home/ada/.npmrc.bak"]"#),
            ),
            (
                Strict,
                "EACCES: permission denied, open '/srv/a'",
                Some(r#""strict","read":["/srv/a"]"#),
            ),
            (
                Strict,
                "EACCES: permission denied, mkdir '/srv/a'",
                Some(r#""strict","write":["/srv/a"]"#),
            ),
            (
                Strict,
                "Error: connect EACCES 10.0.0.1:443 - Local (undefined:undefined)",
                Some("add the port to 'ports'"),
            ),
            (
                Strict,
                "PermissionError: [Errno 13] Permission denied",
                Some("'read', 'write' and 'ports'"),
            ),
            (
                Default,
                "PermissionError: [Errno 13] Permission denied",
                None,
            ),
            (
                Default,
                "ENOENT: no such file or directory, open '/x'",
                None,
            ),
            (Off, "cat: /home/ada/.ssh/id_rsa: Permission denied", None),
        ] {
            let found = advice_on(level, line);
            match expected {
                Some(expected) => assert!(
                    found.as_ref().is_some_and(|found| found.contains(expected)),
                    "{line}: {found:?}"
                ),
                None => assert_eq!(found, None, "{line}"),
            }
        }
    }
}
