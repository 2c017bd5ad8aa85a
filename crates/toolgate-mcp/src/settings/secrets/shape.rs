//! Recognizes secrets by their shape.

// Prefixes of keys and tokens that no ordinary words have.
const PREFIXES: &str = "sk- sk_ rk_ pk_live_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- \
    xoxa- xoxb- xoxe- xoxe. xoxp- xoxr- xoxs- xapp- AKIA ASIA AIza ya29. npm_ pypi- hf_ gsk_ xai- \
    pplx- r8_ fc- tvly- ntn_ secret_ lin_api_ figd_ dop_v1_ shpat_ shpss_ SG. whsec_";
// A key is longer than any word with the same prefix.
const MIN_LEN_WITH_PREFIX: usize = 16;
// An unbroken run of letters and digits of this length is not a word if some are digits.
const MIN_RUN_LEN: usize = 20;
const MIN_DIGITS: usize = 3;
const MIN_DISTINCT: usize = 8;

pub(super) fn find_secrets(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`,;|<>()[]{}".contains(c);
    text.split(is_separator)
        .filter(|word| !word.is_empty())
        .flat_map(secrets_in_word)
}

/// Returns the whole word if it is one token, else only its random part, as in a path or URL.
fn secrets_in_word(word: &str) -> Vec<&str> {
    let token = word.rsplit(['=', ':', '@', '/']).next().unwrap_or(word);
    if has_known_prefix(token) {
        return vec![token];
    }
    if is_uuid(word) {
        return Vec::new();
    }
    let random = runs(word).filter(|run| is_random_run(run));
    // Base64 is hidden as a whole. In a path that would hide too much.
    let is_base64 = word.ends_with('=') || word.contains('+');
    if word.contains([':', '@', '\\']) || (word.contains('/') && !is_base64) {
        return random.collect();
    }
    let named = word.trim_end_matches('=').split_once('=');
    let value = named.map_or(word, |(name, _)| &word[name.len() + 1..]);
    random.take(1).map(|_| value).collect()
}

fn has_known_prefix(word: &str) -> bool {
    let is_jwt = word.starts_with("eyJ") && word.matches('.').count() == 2;
    let has_prefix = PREFIXES.split(' ').any(|prefix| word.starts_with(prefix));
    word.len() >= MIN_LEN_WITH_PREFIX && (is_jwt || has_prefix)
}

fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
}

fn is_random_run(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let mut seen = [false; 128];
    for byte in run.bytes() {
        seen[usize::from(byte & 0x7f)] = true;
    }
    let distinct = seen.iter().filter(|seen| **seen).count();
    run.len() >= MIN_RUN_LEN
        && digits >= MIN_DIGITS
        && digits < run.len()
        && distinct >= MIN_DISTINCT
}

// UUIDs usually identify tenants and projects. If one is a key, its name says so.
fn is_uuid(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let lengths = parts.iter().map(|part| part.len());
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    lengths.eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_wherever_they_stand() {
        for (text, expected) in [
            (
                "sk-proj-abcdefghijklmnop",
                &["sk-proj-abcdefghijklmnop"][..],
            ),
            (
                "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
                &["ghp_16C7e42F292c6912E7710c838347Ae178B4a"],
            ),
            ("xoxb-1234-abcd-efgh-ijkl", &["xoxb-1234-abcd-efgh-ijkl"]),
            ("AKIAIOSFODNN7EXAMPLE", &["AKIAIOSFODNN7EXAMPLE"]),
            (
                "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SflKxw",
                &["eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SflKxw"],
            ),
            (
                "3f786850e387550fdab836ed7e6dc881de23001b",
                &["3f786850e387550fdab836ed7e6dc881de23001b"],
            ),
            (
                "q2Vd+8fK1mZ7sX0bR4tY9wLc3/aPe6==",
                &["q2Vd+8fK1mZ7sX0bR4tY9wLc3/aPe6=="],
            ),
            (
                "wJalrXUtnFEMI7K7MDENGbPxRfi2CY-_x=",
                &["wJalrXUtnFEMI7K7MDENGbPxRfi2CY-_x="],
            ),
            (
                "--key=a1b2c3d4e5f6a7b8c9d0e1f2",
                &["a1b2c3d4e5f6a7b8c9d0e1f2"],
            ),
            (
                "https://hooks.slack.com/services/T024BE7LD/B1/a1b2c3d4e5f6g7h8i9j0k1l2",
                &["a1b2c3d4e5f6g7h8i9j0k1l2"],
            ),
            (
                "/home/ada/.cache/3f786850e387550fdab836ed/x",
                &["3f786850e387550fdab836ed"],
            ),
        ] {
            let found: Vec<&str> = find_secrets(text).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn ordinary_values_are_not_taken_for_keys() {
        for text in [
            "production",
            "debug",
            "/usr/local/lib/node_modules/.bin:/usr/bin",
            "ec2-12-34-56-78.eu-central-1.compute.amazonaws.com",
            "http://192.168.178.20:8123/api/webhook/front-door-opened",
            "claude-sonnet-4-20250514,gpt-4.1-mini-2025-04-14",
            "en_US.UTF-8",
            "2026-11-17T19:00:00Z",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "arn:aws:s3:::my-bucket-2026",
            "com.example.AVeryLongClassNameWithoutDigits",
            "1234567890123456789012345",
            "--max-old-space-size=4096 --enable-source-maps",
            "sk-short",
            "my.user+tag@example.org",
        ] {
            assert_eq!(find_secrets(text).collect::<Vec<_>>(), [""; 0], "{text}");
        }
    }
}
