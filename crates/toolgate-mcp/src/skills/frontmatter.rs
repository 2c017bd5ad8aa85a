//! The YAML at the head of a `SKILL.md`, as JSON. Only the YAML that people write there is
//! understood: mappings, lists, scalars and block scalars, but no anchors, aliases, tags or quotes
//! over several lines. Anything else is an error, so that no other parser reads it differently.

mod flow;
mod reader;
mod scalar;

use serde_json::{Map, Value};

use reader::YamlReader;

// Bounds of one frontmatter.
const MAX_BYTES: usize = 64 << 10;
const MAX_VALUES: usize = 2000;
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    #[error("it must begin with a line '---', and a second such line must end the frontmatter")]
    Missing,
    #[error(
        "its frontmatter is larger than {} KiB, nested too deeply or has too many values",
        MAX_BYTES >> 10
    )]
    TooLarge,
    #[error("line {line} of its frontmatter {problem}")]
    Invalid {
        /// 1 is the first line after '---'.
        line: usize,
        /// Completes "line N of its frontmatter …".
        problem: &'static str,
    },
}

/// The frontmatter of a `SKILL.md`, as JSON.
pub fn parse_frontmatter(file: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let text = find_frontmatter(file)?;
    let value = YamlReader::new(text).parse_document()?;
    match value {
        Value::Object(frontmatter) => Ok(frontmatter),
        _ => Err(FrontmatterError::Invalid {
            line: 1,
            problem: "is not the beginning of a mapping, such as 'name: x'",
        }),
    }
}

fn find_frontmatter(file: &str) -> Result<&str, FrontmatterError> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let start = file
        .strip_prefix("---\n")
        .or_else(|| file.strip_prefix("---\r\n"));
    let text = start.ok_or(FrontmatterError::Missing)?;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim().is_empty())
        {
            return Ok(&text[..end]);
        }
        end += line.len();
        if end > MAX_BYTES {
            return Err(FrontmatterError::TooLarge);
        }
    }
    Err(FrontmatterError::Missing)
}

#[cfg(test)]
mod tests;
