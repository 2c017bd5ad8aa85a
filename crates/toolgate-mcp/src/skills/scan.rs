//! Finds skills in folders: every folder with a `SKILL.md`, and the files in it.
//!
//! Symbolic links are left out, and so is everything hidden, so that no file outside of the folder
//! is served, and none that its owner doesn't see.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{Context, SHA256};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;

use super::frontmatter::parse_frontmatter;

pub(super) const SKILL_FILE: &str = "SKILL.md";
pub(super) const SCHEME: &str = "skill://";
/// The bounds that the specification gives to one skill.
const MAX_FILES: usize = 512;
pub(super) const MAX_SKILL_BYTES: u64 = 16 << 20;
// Bounds of one folder of the configuration.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 10_000;
const MAX_SKILLS: usize = 200;
const MAX_NAME: usize = 64;

/// A skill with its files, as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundSkill {
    /// The entry of `skills/list`.
    pub(super) entry: Value,
    pub(super) files: Vec<SkillFile>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SkillFile {
    pub(super) uri: String,
    /// The folder of the configuration, and the path below it.
    pub(super) root: PathBuf,
    pub(super) path: Vec<String>,
    pub(super) size: u64,
    digest: String,
}

impl FoundSkill {
    pub(super) fn uri(&self) -> &str {
        self.entry["uri"].as_str().unwrap_or_default()
    }
}

/// Digests of files that haven't changed since they were read.
#[derive(Default)]
pub(super) struct DigestCache(HashMap<PathBuf, (FileStamp, String)>);

/// Device, inode, length, and when content or properties changed.
type FileStamp = (u64, u64, u64, Option<SystemTime>, i64, i64);

/// What a scan found, and what is wrong with the rest.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    pub(super) skills: Vec<FoundSkill>,
    pub(super) problems: Vec<String>,
}

/// Looks through all folders. Blocks while it reads files.
pub(super) fn scan(folders: &[PathBuf], cache: &mut DigestCache) -> ScanResult {
    let mut result = ScanResult::default();
    let mut known = DigestCache::default();
    for folder in folders {
        let shown = escape(&folder.display().to_string());
        let mut walk = FolderWalk {
            root: folder,
            budget: MAX_ENTRIES,
            found: Vec::new(),
        };
        if let Err(error) = walk.visit(&mut Vec::new()) {
            let problem = format!("the folder of skills {shown} can't be read: {error}");
            result.problems.push(problem);
        }
        if walk.budget == 0 {
            let problem = format!(
                "the folder of skills {shown} has more than {MAX_ENTRIES} entries; the rest is left out"
            );
            result.problems.push(problem);
        }
        for path in walk.skill_folders() {
            match walk.skill(&path, cache, &mut known) {
                Ok(skill) if result.skills.len() >= MAX_SKILLS => {
                    let problem = format!(
                        "there are more than {MAX_SKILLS} skills; {} is left out",
                        skill.uri()
                    );
                    result.problems.push(problem);
                    break;
                }
                Ok(skill) if result.skills.iter().any(|it| it.uri() == skill.uri()) => {
                    let problem = format!(
                        "two folders have the skill {}; the first one is used",
                        skill.uri()
                    );
                    result.problems.push(problem);
                }
                Ok(skill) => result.skills.push(skill),
                Err(problem) => {
                    let path = escape(&folder.join(path.join("/")).display().to_string());
                    result
                        .problems
                        .push(format!("the skill in {path} is left out: {problem}"));
                }
            }
        }
    }
    *cache = known;
    result
}

/// One folder of the configuration.
struct FolderWalk<'a> {
    root: &'a Path,
    // Entries that may still be looked at.
    budget: usize,
    // The paths of files, below the root.
    found: Vec<Vec<String>>,
}

impl FolderWalk<'_> {
    fn visit(&mut self, path: &mut Vec<String>) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.root.join(path.join("/")))? {
            self.budget = self.budget.saturating_sub(1);
            if self.budget == 0 {
                break;
            }
            let entry = entry?;
            // Doesn't follow links.
            let kind = entry.file_type()?;
            if let Some(name) = shown_name(&entry.file_name())
                && (kind.is_file() || kind.is_dir())
            {
                entries.push((name, kind.is_dir()));
            }
        }
        // The same list every time, whatever order the file system has.
        entries.sort_unstable();
        for (name, is_folder) in entries {
            path.push(name);
            if !is_folder {
                self.found.push(path.clone());
            } else if path.len() < MAX_DEPTH {
                // A folder that can't be read hides no other one.
                drop(self.visit(path));
            }
            path.pop();
        }
        Ok(())
    }

    fn skill_folders(&self) -> Vec<Vec<String>> {
        let heads = self.found.iter().filter_map(|path| {
            let (file, folder) = path.split_last()?;
            (file == SKILL_FILE).then(|| folder.to_vec())
        });
        heads.collect()
    }

    fn skill(
        &self,
        folder: &[String],
        cache: &DigestCache,
        known: &mut DigestCache,
    ) -> Result<FoundSkill, String> {
        let frontmatter = self.frontmatter(folder)?;
        let name = frontmatter["name"].as_str().unwrap_or_default();
        // A folder that is a skill itself is part of the paths below it.
        let is_skill = |path: &Vec<String>| *path == [SKILL_FILE];
        let own = self.root.file_name().and_then(OsStr::to_str);
        let own = own.filter(|_| self.found.iter().any(is_skill));
        let path: Vec<&str> = own
            .into_iter()
            .chain(folder.iter().map(String::as_str))
            .collect();
        if path.last() != Some(&name) {
            return Err(format!(
                "its name '{}' is not that of its folder",
                escape(name)
            ));
        }
        let base = path.iter().map(|segment| encode(segment));
        let base = format!("{SCHEME}{}", base.collect::<Vec<_>>().join("/"));
        let inside = self.found.iter().filter(|path| path.starts_with(folder));
        let inside: Vec<&Vec<String>> = inside.collect();
        if inside.len() > MAX_FILES {
            return Err(format!("it has more than {MAX_FILES} files"));
        }
        let mut files = Vec::with_capacity(inside.len());
        let mut left = MAX_SKILL_BYTES;
        for path in inside {
            let rest = path[folder.len()..].iter().map(|segment| encode(segment));
            let uri = format!("{base}/{}", rest.collect::<Vec<_>>().join("/"));
            let (size, digest) = self
                .digest(path, left, cache, known)
                .map_err(|error| format!("{}: {error}", escape(&path.join("/"))))?;
            left = left.checked_sub(size).ok_or_else(too_large)?;
            files.push(SkillFile {
                uri,
                root: self.root.to_owned(),
                path: path.clone(),
                size,
                digest,
            });
        }
        let listed = files
            .iter()
            .map(|file| json!({ "uri": file.uri, "digest": file.digest, "size": file.size }));
        let entry = json!({
            "uri": format!("{base}/{SKILL_FILE}"),
            "frontmatter": frontmatter,
            "resources": listed.collect::<Vec<_>>(),
        });
        Ok(FoundSkill { entry, files })
    }

    fn frontmatter(&self, folder: &[String]) -> Result<Map<String, Value>, String> {
        let path = [folder, &[SKILL_FILE.to_owned()]].concat();
        let bytes = read_file(self.root, &path, MAX_SKILL_BYTES)
            .map_err(|error| format!("{SKILL_FILE} can't be read: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{SKILL_FILE} is not UTF-8"))?;
        let frontmatter = parse_frontmatter(&text).map_err(|error| error.to_string())?;
        let is_present = |key: &str| {
            let text = frontmatter.get(key).and_then(Value::as_str);
            text.is_some_and(|text| !text.trim().is_empty())
        };
        if !is_present("name") || !is_present("description") {
            return Err("its frontmatter needs a name and a description".to_owned());
        }
        if !frontmatter["name"].as_str().is_some_and(is_skill_name) {
            return Err(format!(
                "a name has up to {MAX_NAME} lower-case letters, digits and single hyphens"
            ));
        }
        Ok(frontmatter)
    }

    fn digest(
        &self,
        path: &[String],
        left: u64,
        cache: &DigestCache,
        known: &mut DigestCache,
    ) -> io::Result<(u64, String)> {
        let file = open_file(self.root, path)?;
        let full = self.root.join(path.join("/"));
        let stamp = stamp(&file)?;
        if let Some((before, digest)) = cache.0.get(&full).or_else(|| known.0.get(&full))
            && *before == stamp
        {
            let digest = digest.clone();
            known.0.insert(full, (stamp, digest.clone()));
            return Ok((stamp.2, digest));
        }
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; 64 << 10];
        let mut reader = file.take(left + 1);
        let mut size = 0;
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                count => {
                    size += count as u64;
                    context.update(&buffer[..count]);
                }
            }
        }
        if size > left {
            return Err(io::Error::other(too_large()));
        }
        let hash = context.finish();
        let hex: String = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let digest = format!("sha256:{hex}");
        if size == stamp.2 {
            known.0.insert(full, (stamp, digest.clone()));
        }
        Ok((size, digest))
    }
}

fn too_large() -> String {
    format!("its files take more than {} MiB", MAX_SKILL_BYTES >> 20)
}

/// `None` for what is hidden, and for names that have no form in a URI.
fn shown_name(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let is_plain = !name.starts_with('.') && !name.chars().any(char::is_control);
    is_plain.then(|| name.to_owned())
}

pub(super) fn is_skill_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn encode(segment: &str) -> String {
    const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(segment, SEGMENT).to_string()
}

/// Reads a file of at most `longest` bytes.
pub(super) fn read_file(root: &Path, path: &[String], longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = open_file(root, path)?.take(longest + 1);
    reader.read_to_end(&mut bytes)?;
    match bytes.len() as u64 > longest {
        true => Err(io::Error::other("it is too large")),
        false => Ok(bytes),
    }
}

/// Opens a file below `root` without following a link, even if one is put there meanwhile.
fn open_file(root: &Path, path: &[String]) -> io::Result<File> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The folder of the configuration may be a link itself: a person chose it.
    let mut at = openat(CWD, root, folder, Mode::empty())?;
    let Some((file, folders)) = path.split_last() else {
        return Err(io::ErrorKind::NotFound.into());
    };
    for name in folders {
        at = openat(&at, name.as_str(), folder | no_link, Mode::empty())?;
    }
    // A pipe would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | no_link;
    let file = File::from(openat(&at, file.as_str(), flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

fn stamp(file: &File) -> io::Result<FileStamp> {
    let about = file.metadata()?;
    let changed = (about.ctime(), about.ctime_nsec());
    let modified = about.modified().ok();
    Ok((
        about.dev(),
        about.ino(),
        about.len(),
        modified,
        changed.0,
        changed.1,
    ))
}

#[cfg(test)]
mod tests;
