//! Removes credentials of package managers from the environment of servers.
//!
//! A server started by npx or uvx needs to know the registry, but neither its password nor
//! the user's publishing token.

use std::ffi::OsString;

// Prefixes of the variables of package managers.
const PREFIXES: &str = "\
    BUN_ BUNDLE_ CARGO_ FLIT_ GEM_ HATCH_ NODE_AUTH_ NPM_ PDM_ PIP_ PNPM_ POETRY_ PYPI_ TWINE_ \
    UV_ YARN_";

// Words in the name of a variable that holds a credential.
const SECRET_WORDS: &str = "\
    AUTH AUTHTOKEN BASIC CREDENTIAL CREDENTIALS KEY OTP PASSWD PASSWORD SECRET TOKEN USERNAME";

/// Returns the value without credentials of a package manager, or `None` if it is nothing else.
pub(super) fn without_credentials(name: &str, value: OsString) -> Option<OsString> {
    let name = name.to_ascii_uppercase();
    if !PREFIXES.split(' ').any(|prefix| name.starts_with(prefix)) {
        return Some(value);
    }
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    if words.any(|word| SECRET_WORDS.split(' ').any(|secret| secret == word)) {
        return None;
    }
    // A proxy's password stays: without it, the server has no network at all.
    if name.ends_with("PROXY") {
        return Some(value);
    }
    // The value may hold several URLs, and uv prefixes names: `name=https://…`.
    let value = value.to_str()?;
    Some(
        value
            .split_inclusive(char::is_whitespace)
            .map(without_userinfo)
            .collect::<String>()
            .into(),
    )
}

// Turns `https://user:password@host/path` into `https://host/path`. A user without a password is
// removed too, because it may be a token.
fn without_userinfo(text: &str) -> String {
    let (before, rest) = match text.split_once("://") {
        // An SSH user is not a secret, and `git@` is needed.
        Some((scheme, _)) if scheme.ends_with("ssh") => return text.to_owned(),
        Some((scheme, _)) => text.split_at(scheme.len() + "://".len()),
        None => return text.to_owned(),
    };
    let authority = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{before}{}", &rest[at + 1..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(name: &str, value: &str) -> Option<String> {
        without_credentials(name, value.into()).map(|value| value.into_string().unwrap())
    }

    #[test]
    fn credentials_of_package_managers_are_left_out() {
        for name in [
            "NPM_CONFIG__AUTH",
            "npm_config__auth",
            "npm_config__authToken",
            "npm_config_//packages.example.org/:_authToken",
            "NPM_CONFIG_//npm.example.org/:_password",
            "npm_config_//npm.example.org/:username",
            "NPM_CONFIG_OTP",
            "NPM_CONFIG_KEY",
            "NPM_TOKEN",
            "NODE_AUTH_TOKEN",
            "YARN_NPM_AUTH_TOKEN",
            "PIP_PASSWORD",
            "UV_PUBLISH_TOKEN",
            "UV_PUBLISH_PASSWORD",
            "UV_PUBLISH_USERNAME",
            "UV_INDEX_PRIVATE_PASSWORD",
            "UV_GITHUB_TOKEN",
            "TWINE_PASSWORD",
            "TWINE_USERNAME",
            "POETRY_HTTP_BASIC_PRIVATE_PASSWORD",
            "CARGO_REGISTRIES_MINE_TOKEN",
        ] {
            assert_eq!(passed(name, "sentinel"), None, "{name}");
        }
    }

    #[test]
    fn an_index_is_passed_on_without_its_password() {
        for (name, value, expected) in [
            (
                "PIP_INDEX_URL",
                "https://u:p@h.org/simple",
                "https://h.org/simple",
            ),
            (
                "PIP_INDEX_URL",
                "https://token@h.org/simple?a@b",
                "https://h.org/simple?a@b",
            ),
            ("PIP_INDEX_URL", "https://u:p@q@h.org:1", "https://h.org:1"),
            (
                "PIP_EXTRA_INDEX_URL",
                "https://u:p@a.org\nhttps://b.org https://v:q@c.org/",
                "https://a.org\nhttps://b.org https://c.org/",
            ),
            (
                "UV_INDEX",
                "mine=https://u:p@h.org/simple",
                "mine=https://h.org/simple",
            ),
            (
                "UV_DEFAULT_INDEX",
                "https://h.org/@scope/x",
                "https://h.org/@scope/x",
            ),
            ("npm_config_registry", "http://u:p@h.org/", "http://h.org/"),
            ("npm_config_scope", "@mine", "@mine"),
            ("UV_PYTHON", "cpython@3.12", "cpython@3.12"),
            ("UV_KEYRING_PROVIDER", "subprocess", "subprocess"),
            (
                "PIP_FIND_LINKS",
                "git+ssh://git@h.org/x",
                "git+ssh://git@h.org/x",
            ),
            (
                "npm_config_https_proxy",
                "http://u:p@h.org",
                "http://u:p@h.org",
            ),
            ("HOME", "https://u:p@h.org", "https://u:p@h.org"),
        ] {
            assert_eq!(passed(name, value).as_deref(), Some(expected), "{name}");
        }
    }
}
