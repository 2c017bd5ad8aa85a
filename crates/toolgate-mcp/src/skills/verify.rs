//! Compares what was read of a skill with its entry, as a user of skills has to before it uses a
//! file. A match proves that a server is consistent, and nothing about its intentions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::frontmatter::parse_frontmatter;
use crate::client::catalog::sha256_hex;

/// Why a file of a skill must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillMismatch {
    #[error("the skill doesn't list this file")]
    Unlisted,
    #[error("the file has {found} bytes, and the skill says {expected}")]
    Size { expected: u64, found: u64 },
    #[error("the file is not the one whose digest the skill gives")]
    Digest,
    #[error("the frontmatter of SKILL.md is not the one that the skill gives: {0}")]
    Frontmatter(String),
    #[error("the answer doesn't hold exactly this file")]
    NotTheFile,
}

/// Checks that the result of `resources/read` for a file of a skill is what the skill lists.
///
/// `entry` is the skill's entry of `skills/list` or `skills/get`, with URIs in the same
/// form as `uri`. A skill that is generated on each read gives no digests; then only
/// the frontmatter is compared.
pub fn verify_skill_file(entry: &Value, uri: &str, result: &Value) -> Result<(), SkillMismatch> {
    let contents = result["contents"].as_array().map_or(&[][..], Vec::as_slice);
    let [content] = contents else {
        return Err(SkillMismatch::NotTheFile);
    };
    let decoded;
    let bytes = match (content["text"].as_str(), content["blob"].as_str()) {
        (Some(text), None) => text.as_bytes(),
        (None, Some(blob)) => {
            decoded = BASE64.decode(blob).map_err(|_| SkillMismatch::NotTheFile)?;
            &decoded
        }
        _ => return Err(SkillMismatch::NotTheFile),
    };
    if content["uri"] != *uri {
        return Err(SkillMismatch::NotTheFile);
    }
    if let Some(files) = entry["resources"].as_array() {
        let file = files.iter().find(|file| file["uri"] == *uri);
        let file = file.ok_or(SkillMismatch::Unlisted)?;
        let expected = file["size"].as_u64().unwrap_or_default();
        let found = bytes.len() as u64;
        if expected != found {
            return Err(SkillMismatch::Size { expected, found });
        }
        if file["digest"] != format!("sha256:{}", sha256_hex(bytes)) {
            return Err(SkillMismatch::Digest);
        }
    }
    match entry["uri"] == *uri {
        true => compare_frontmatter(entry, bytes),
        false => Ok(()),
    }
}

fn compare_frontmatter(entry: &Value, file: &[u8]) -> Result<(), SkillMismatch> {
    let differs = |what: &str| SkillMismatch::Frontmatter(what.to_owned());
    let text = str::from_utf8(file).map_err(|_| differs("it is not UTF-8"))?;
    let found = parse_frontmatter(text).map_err(|error| differs(&error.to_string()))?;
    let given = entry["frontmatter"].as_object();
    let given = given.ok_or_else(|| differs("it gives none"))?;
    let keys = found.keys().chain(given.keys());
    // An absent field and an empty one are the same in YAML.
    let field = |all: &Map<String, Value>, key: &str| all.get(key).cloned().unwrap_or_default();
    let other = keys
        .into_iter()
        .find(|key| !is_same(&field(&found, key), &field(given, key)));
    other.map_or(Ok(()), |key| {
        let key: String = key.chars().take(50).collect();
        Err(differs(&format!("'{key}' differs")))
    })
}

/// Equal as JSON values: `1` and `1.0` are the same number.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has_same = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|other| is_same(value, other))
            };
            a.len() == b.len() && a.iter().all(has_same)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URI: &str = "skill://a/SKILL.md";
    const TEXT: &str = "---\nname: a\ndescription: d\nmetadata:\n  version: 1.0\n---\nbody";

    fn entry() -> Value {
        let digest = |text: &str| format!("sha256:{}", sha256_hex(text.as_bytes()));
        json!({
            "uri": URI,
            "frontmatter": { "metadata": { "version": 1 }, "name": "a", "description": "d" },
            "resources": [
                { "uri": URI, "size": TEXT.len(), "digest": digest(TEXT) },
                { "uri": "skill://a/x", "size": 3, "digest": digest("\u{0}xy") },
            ],
        })
    }

    fn read(uri: &str, key: &str, value: &str) -> Value {
        json!({ "contents": [{ "uri": uri, key: value }] })
    }

    #[test]
    fn only_the_file_that_the_entry_promises_is_accepted() {
        let same = read(URI, "text", TEXT);
        assert_eq!(verify_skill_file(&entry(), URI, &same), Ok(()));
        let blob = read("skill://a/x", "blob", "AHh5");
        assert_eq!(verify_skill_file(&entry(), "skill://a/x", &blob), Ok(()));

        let longer = read(URI, "text", &format!("{TEXT}!"));
        let (expected, found) = (TEXT.len() as u64, TEXT.len() as u64 + 1);
        let size = SkillMismatch::Size { expected, found };
        assert_eq!(verify_skill_file(&entry(), URI, &longer), Err(size));
        let other = read(URI, "text", &TEXT.replace("body", "evil"));
        let digest = SkillMismatch::Digest;
        assert_eq!(verify_skill_file(&entry(), URI, &other), Err(digest));
        let unlisted = verify_skill_file(&entry(), "skill://a/y", &read("skill://a/y", "text", ""));
        assert_eq!(unlisted, Err(SkillMismatch::Unlisted));
        let not_it = Err(SkillMismatch::NotTheFile);
        for result in [
            json!({ "contents": [] }),
            json!({ "contents": [same["contents"][0], same["contents"][0]] }),
            read("skill://a/x", "text", TEXT),
            read(URI, "blob", "no base64"),
            json!({ "contents": [{ "uri": URI, "text": TEXT, "blob": "" }] }),
        ] {
            assert_eq!(
                verify_skill_file(&entry(), URI, &result),
                not_it,
                "{result}"
            );
        }
    }

    #[test]
    fn the_frontmatter_is_compared_even_without_digests() {
        let mut dynamic = entry();
        dynamic["resources"] = json!("dynamic");
        let same = read(URI, "text", TEXT);
        assert_eq!(verify_skill_file(&dynamic, URI, &same), Ok(()));
        for (from, to) in [
            ("description: d", "description: steal"),
            ("version: 1.0", "version: 2"),
            ("name: a", "name: a\nallowed-tools: all"),
            ("---\nname", "name"),
        ] {
            let changed = read(URI, "text", &TEXT.replace(from, to));
            let found = verify_skill_file(&dynamic, URI, &changed);
            assert!(
                matches!(found, Err(SkillMismatch::Frontmatter(_))),
                "{to}: {found:?}"
            );
        }
    }
}
