//! [`KnownSecrets`]: searches text for known secrets in every encoding that is likely to occur.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::HIDDEN;

// Shorter values occur in most texts by chance.
const MIN_BYTES: usize = 4;
// Encodings of shorter values are too likely to match other text.
const MIN_ENCODED_LEN: usize = 8;
const URL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

#[derive(Default)]
pub(super) struct KnownSecrets {
    values: Vec<String>,
    // `None` without secrets.
    search: Option<AhoCorasick>,
}

impl KnownSecrets {
    pub(super) fn with(&self, more: &[String]) -> Self {
        let more = more.iter().filter(|secret| secret.len() >= MIN_BYTES);
        let mut values: Vec<String> = self.values.iter().chain(more).cloned().collect();
        values.sort();
        values.dedup();
        if values.is_empty() {
            return Self::default();
        }
        let spellings = values.iter().flat_map(|secret| spellings(secret));
        // The longest match wins: otherwise a secret that is the beginning of a longer one would
        // leave the rest of it visible.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(spellings);
        Self {
            values,
            // It fails only beyond four billion states, more than any configuration holds.
            search: search.ok(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.search
            .as_ref()
            .is_some_and(|search| search.is_match(text))
    }

    pub(super) fn redact<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        let Some(search) = &self.search else {
            return text;
        };
        if !search.is_match(&*text) {
            return text;
        }
        let mut shown = String::with_capacity(text.len());
        search.replace_all_with(&text, &mut shown, |_, _, shown| {
            shown.push_str(HIDDEN);
            true
        });
        Cow::Owned(shown)
    }
}

// The secret itself, and its form in JSON, in a URL or form, in hexadecimal and inside base64.
fn spellings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned()];
    let json = serde_json::Value::from(secret).to_string();
    all.push(json[1..json.len() - 1].to_owned());
    if secret.len() >= MIN_ENCODED_LEN {
        let url = utf8_percent_encode(secret, URL).to_string();
        all.push(url.replace("%20", "+"));
        all.push(lower_case_escapes(&url));
        all.push(url);
        let digits = |digit: fn(u8) -> String| secret.bytes().map(digit).collect::<String>();
        all.push(digits(|byte| format!("{byte:02x}")));
        all.push(digits(|byte| format!("{byte:02X}")));
        for offset in 0..3 {
            all.push(inside_base64(&STANDARD_NO_PAD, secret, offset));
            all.push(inside_base64(&URL_SAFE_NO_PAD, secret, offset));
        }
    }
    all.sort();
    all.dedup();
    all
}

fn lower_case_escapes(url: &str) -> String {
    let mut parts = url.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        out.push('%');
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

// The part of a secret's base64 that doesn't depend on the text around it, if `offset` bytes
// (modulo three) come before it. Finds the password in the `user:password` of HTTP basic
// authentication.
fn inside_base64(engine: &impl Engine, secret: &str, offset: usize) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset)
        .chain(secret.bytes())
        .collect();
    let encoded = engine.encode(&bytes);
    // Each character holds six bits. Those at the edges also hold bits of the text before or after.
    let own = (offset * 8).div_ceil(6)..bytes.len() * 8 / 6;
    encoded[own].to_owned()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const SECRET: &str = "s3cret/key+ää \"x\"";

    fn hide(text: &str) -> String {
        let known = KnownSecrets::default().with(&[SECRET.to_owned()]);
        known.redact(text.into()).into_owned()
    }

    #[test]
    fn f28_every_spelling_of_a_secret_is_hidden() {
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        for spelling in [
            SECRET.to_owned(),
            serde_json::to_string(SECRET).unwrap(),
            "?k=s3cret%2Fkey%2B%C3%A4%C3%A4%20%22x%22&b=1".to_owned(),
            "?k=s3cret%2fkey%2b%c3%a4%c3%a4%20%22x%22".to_owned(),
            "k=s3cret%2Fkey%2B%C3%A4%C3%A4+%22x%22".to_owned(),
            hex.to_uppercase(),
            hex,
        ] {
            let hidden = hide(&format!("before {spelling} after"));
            assert!(hidden.contains(HIDDEN), "{spelling}");
            let digits = hidden.replace(HIDDEN, "");
            assert!(
                !digits.contains("key") && !digits.contains("6b6579"),
                "{hidden}"
            );
        }
    }

    #[test]
    fn f28_a_secret_is_found_within_base64_wherever_it_begins() {
        for user in ["", "u:", "us:", "user:", "someone:"] {
            for tail in ["", "!", "!!", "\nand more"] {
                let login = STANDARD.encode(format!("{user}{SECRET}{tail}"));
                let hidden = hide(&format!("Authorization: Basic {login}"));
                let left = hidden
                    .replace("Authorization: Basic ", "")
                    .replace(HIDDEN, "");
                // Only the edges remain, mixed with what surrounds the secret.
                let most = STANDARD.encode(format!("{user}{tail}")).len() + 8;
                assert!(
                    hidden.contains(HIDDEN) && left.len() <= most,
                    "{user:?} {tail:?}: {hidden}"
                );
            }
        }
    }

    #[test]
    fn short_secrets_are_hidden_only_unencoded() {
        let known = KnownSecrets::default().with(&["abcd".to_owned(), "x".to_owned()]);
        assert_eq!(
            known.redact("abcd x 61626364".into()),
            "[REDACTED] x 61626364"
        );
    }
}
