//! Recognizes from stderr that an interrupted download left a half-written package cache.

use std::path::{Path, PathBuf};

use super::stdio;
use crate::ServerProgram;

// npm prints these for a half-written folder without naming the folder.
const NPM_ERRORS: [&str; 2] = ["npm error Invalid Version", "npm ERR! Invalid Version"];
// Errors of a missing or unfinished module. Another line may name the npx folder.
const MODULE_ERRORS: [&str; 6] = [
    "Cannot find package",
    "Cannot find module",
    "ERR_MODULE_NOT_FOUND",
    "ERR_INVALID_PACKAGE_CONFIG",
    "Invalid package config",
    "SyntaxError: Unexpected end of input",
];
// Errors of any missing or broken file. A server prints them for its own files too, so the same
// line must name an npx folder, unless npm itself printed it.
const FILE_ERRORS: [&str; 3] = ["Unexpected end of JSON input", "ENOTEMPTY", "ENOENT"];
const NPM_PREFIXES: [&str; 2] = ["npm error ", "npm ERR! "];
// The text before npm's log path, which reveals the cache folder even if `.npmrc` moved it.
const NPM_LOG_PREFIX: &str = "can be found in: ";
const UV_ERRORS: [&str; 3] = [
    "failed to read from the distribution cache",
    "Failed to deserialize cache entry",
    "The wheel is invalid",
];
// npx names its folders after a hash, with this many hexadecimal digits.
const HASH_DIGITS: usize = 16;

/// Returns advice for repairing a broken cache, if stderr shows one; only the caches that
/// `program` uses are considered.
pub(crate) fn find_advice(program: &ServerProgram, stderr: &[String]) -> Option<String> {
    if let Some(folder) = broken_npx_folder(program, stderr) {
        let folder = shell_quote(&folder);
        return Some(format!(
            "the npx cache of this package is half-written; delete it with: rm -rf {folder}"
        ));
    }
    (program.is_package_runner() && stderr.iter().any(|line| contains_any(line, &UV_ERRORS)))
        .then(|| "the uv cache is broken; clear it with: uv cache clean".to_owned())
}

fn broken_npx_folder(program: &ServerProgram, stderr: &[String]) -> Option<PathBuf> {
    folder_from_npm_error(program, stderr)
        .or_else(|| folder_from_module_error(stderr))
        .or_else(|| folder_from_file_error(stderr))
        .or_else(|| folder_from_missing_program(program, stderr))
}

// npm reports a half-written folder without naming it. Another line may name it; otherwise it is
// in the cache that the log path reveals, or in the default cache.
fn folder_from_npm_error(program: &ServerProgram, stderr: &[String]) -> Option<PathBuf> {
    if !stderr.iter().any(|line| contains_any(line, &NPM_ERRORS)) {
        return None;
    }
    let default_folder = || program.npx_folder(&stdio::variables(program));
    let folder_beside_log = || {
        let cache = stderr.iter().find_map(|line| cache_in(line))?;
        Some(cache.join("_npx").join(default_folder()?.file_name()?))
    };
    stderr
        .iter()
        .find_map(|line| folder_in(line))
        .or_else(folder_beside_log)
        .or_else(default_folder)
}

// A module of the package is missing or unfinished, and any line names the folder.
fn folder_from_module_error(stderr: &[String]) -> Option<PathBuf> {
    if !has_module_error(stderr) {
        return None;
    }
    stderr.iter().find_map(|line| folder_in(line))
}

// A file is missing or broken. Only lines of npm count if npm reported it.
fn folder_from_file_error(stderr: &[String]) -> Option<PathBuf> {
    if has_npm_file_error(stderr) {
        return stderr
            .iter()
            .filter(|line| contains_any(line, &NPM_PREFIXES))
            .find_map(|line| folder_in(line));
    }
    stderr
        .iter()
        .filter(|line| contains_any(line, &FILE_ERRORS))
        .find_map(|line| folder_in(line))
}

// The shell did not find the package's program although its folder exists, and no other error
// explains the failure.
fn folder_from_missing_program(program: &ServerProgram, stderr: &[String]) -> Option<PathBuf> {
    let is_missing = stderr.iter().any(|line| is_missing_program(line));
    if !is_missing || has_module_error(stderr) || has_npm_file_error(stderr) {
        return None;
    }
    let folder = program.npx_folder(&stdio::variables(program))?;
    folder.exists().then_some(folder)
}

// If the server's own module is missing, the server is broken and deleting the cache won't help.
fn has_module_error(stderr: &[String]) -> bool {
    let is_own = |line: &String| line.contains("Cannot find module '/") && !line.contains("/_npx/");
    stderr.iter().any(|line| contains_any(line, &MODULE_ERRORS)) && !stderr.iter().any(is_own)
}

fn has_npm_file_error(stderr: &[String]) -> bool {
    let is_npm_file_error =
        |line: &String| contains_any(line, &NPM_PREFIXES) && contains_any(line, &FILE_ERRORS);
    stderr.iter().any(is_npm_file_error)
}

fn contains_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

// Returns the npx folder that a line names: `…/_npx/<16 digits>`. Stderr is untrusted and the
// folder ends up in an `rm -rf`, so only exactly this form is accepted.
fn folder_in(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once("/_npx/")?;
    let hash = after.get(..HASH_DIGITS)?;
    let is_whole = !after[HASH_DIGITS..].starts_with(|c: char| c.is_alphanumeric());
    if !is_whole || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    // The path starts after a quote or separator. A path with spaces is cut at the last
    // space, loses its leading slash, and is therefore rejected.
    let start = before
        .rfind(['\'', '"', '`', ' ', '(', '<'])
        .map_or(0, |at| at + 1);
    let start = before[start..]
        .strip_prefix("file://")
        .unwrap_or(&before[start..]);
    start
        .starts_with('/')
        .then(|| Path::new(start).join("_npx").join(hash))
}

fn cache_in(line: &str) -> Option<PathBuf> {
    let (_, log) = line.split_once(NPM_LOG_PREFIX)?;
    let (cache, _) = log.split_once("/_logs/")?;
    cache.starts_with('/').then(|| PathBuf::from(cache))
}

// True for `sh: 1: context7-mcp: not found`, as dash and bash print it: the package folder exists
// but its program does not.
fn is_missing_program(line: &str) -> bool {
    line.starts_with("sh: ")
        && (line.ends_with(": not found") || line.ends_with(": command not found"))
}

fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npx(package: &str) -> ServerProgram {
        ServerProgram {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned(), package.to_owned()],
            env: [("npm_config_cache".to_owned(), "/cache".to_owned())].into(),
            ..ServerProgram::default()
        }
    }

    fn advice_on(program: &ServerProgram, stderr: &str) -> Option<String> {
        let lines: Vec<String> = stderr.lines().map(str::to_owned).collect();
        let advice = find_advice(program, &lines)?;
        Some(advice.rsplit(": ").next().unwrap().to_owned())
    }

    #[test]
    fn a_half_written_npx_cache_is_recognized_and_its_folder_named() {
        let named = "rm -rf /home/ada/.npm/_npx/12b05d58670d8359";
        let usual = "rm -rf /cache/_npx/12b05d58670d8359";
        for (stderr, expected) in [
            (
                "npm error Invalid Version: \nnpm error A complete log of this run can be found in: /x",
                Some(usual),
            ),
            (
                "npm error Invalid Version: \nnpm error A complete log of this run can be found in: /other/_logs/2026-debug-0.log",
                Some("rm -rf /other/_npx/12b05d58670d8359"),
            ),
            (
                "npm error code ENOTEMPTY\nnpm error syscall rename\nnpm error path /home/ada/.npm/_npx/12b05d58670d8359/node_modules/x",
                Some(named),
            ),
            (
                "Error: ENOENT: no such file or directory, open '/home/ada/notes.json'\n    at /home/ada/.npm/_npx/12b05d58670d8359/x.js:1",
                None,
            ),
            (
                "Error: Cannot find module '/home/ada/plugin.js'\nRequire stack:\n- /home/ada/.npm/_npx/12b05d58670d8359/x.js",
                None,
            ),
            (
                "/home/ada/.npm/_npx/12b05d58670d8359/x.js:7\n}\nSyntaxError: Unexpected end of input",
                Some(named),
            ),
            ("npm ERR! Invalid Version: ", Some(usual)),
            (
                "Error: Cannot find package '/home/ada/.npm/_npx/12b05d58670d8359/node_modules/a/index.js'",
                Some(named),
            ),
            (
                "Error: Cannot find package 'zod' imported from /home/ada/.npm/_npx/12b05d58670d8359/node_modules/a/b.js\n  code: 'ERR_MODULE_NOT_FOUND'",
                Some(named),
            ),
            (
                "node:internal/modules\n  code: 'ERR_MODULE_NOT_FOUND',\n  url: 'file:///home/ada/.npm/_npx/12b05d58670d8359/x.js'",
                Some(named),
            ),
            (
                "npm error ENOTEMPTY: directory not empty, rename '/home/ada/.npm/_npx/12b05d58670d8359/node_modules/a' -> '/b'",
                Some(named),
            ),
            (
                "npm error enoent ENOENT: no such file or directory, open '/home/ada/.npm/_npx/12b05d58670d8359/package.json'",
                Some(named),
            ),
            (
                "Error: Cannot find module 'x'\nRequire stack: /srv/server.js",
                None,
            ),
            (
                "Error: Cannot find module '/home/ada/.npm/_npx/../../x'",
                None,
            ),
            (
                "Error: Cannot find module '/home/ada/.npm/_npx/12b05d58670d8359abc/x'",
                None,
            ),
            (
                "starting in /home/ada/.npm/_npx/12b05d58670d8359/node_modules",
                None,
            ),
            ("sh: 1: context7-mcp: not found", None),
            ("", None),
        ] {
            let found = advice_on(&npx("firecrawl-mcp"), stderr);
            assert_eq!(found.as_deref(), expected, "{stderr}");
        }
        let other = ServerProgram::default();
        assert_eq!(advice_on(&other, "npm error Invalid Version:"), None);
    }

    #[test]
    fn a_missing_program_means_a_half_written_cache() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("its cache");
        std::fs::create_dir_all(cache.join("_npx/12b05d58670d8359")).unwrap();
        let mut program = npx("firecrawl-mcp");
        let text = cache.display().to_string();
        program
            .env
            .insert("npm_config_cache".to_owned(), text.clone());
        let expected = format!("rm -rf '{text}/_npx/12b05d58670d8359'");
        for line in [
            "sh: 1: firecrawl-mcp: not found",
            "sh: line 1: firecrawl-mcp: command not found",
        ] {
            assert_eq!(
                advice_on(&program, line).as_ref(),
                Some(&expected),
                "{line}"
            );
        }
    }

    #[test]
    fn a_broken_uv_cache_is_recognized() {
        let mut program = npx("x");
        program.command = "uvx".to_owned();
        let stderr = "error: Failed to install: x.whl\n  Caused by: failed to read from the distribution cache";
        assert_eq!(
            advice_on(&program, stderr).as_deref(),
            Some("uv cache clean")
        );
    }
}
