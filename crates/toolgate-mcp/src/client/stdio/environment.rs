//! Builds the environment of a server: the variables that programs need to run, and those
//! that the configuration sets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::credentials::without_credentials;
use crate::ServerProgram;

// Inherited variables.
const INHERITED: &str = "\
    HOME LANG LOGNAME NODE_EXTRA_CA_CERTS PATH SHELL SSL_CERT_FILE TERM TMPDIR TZ USER";

// Prefixes of inherited variables: locales, base directories, and settings of npm, pip and uv.
const INHERITED_PREFIXES: &str = "LC_ XDG_ NPM_CONFIG_ npm_config_ PIP_ UV_";

// Inherited in upper or lower case.
const PROXIES: &str = "ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY";

// Prefix of this program's variables, including its token: never inherited.
const OWN_PREFIX: &str = "TOOLGATE_";

// API keys of model providers: never inherited.
const MODEL_KEYS: &str = "\
    ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN AZURE_OPENAI_API_KEY CEREBRAS_API_KEY \
    CLAUDE_CODE_OAUTH_TOKEN COHERE_API_KEY DEEPSEEK_API_KEY FIREWORKS_API_KEY GEMINI_API_KEY \
    GOOGLE_API_KEY GROQ_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN MISTRAL_API_KEY NVIDIA_API_KEY \
    OLLAMA_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY PERPLEXITY_API_KEY TOGETHER_API_KEY \
    XAI_API_KEY";

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns a server's variables, built from its settings and this process's variables (`ours`).
pub(super) fn build(
    program: &ServerProgram,
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<OsString, OsString> {
    let mut variables = BTreeMap::from([("PATH".into(), DEFAULT_PATH.into())]);
    let inherited = |(name, value): (OsString, OsString)| {
        let value = match name.to_str() {
            Some(name) if is_never_inherited(name) => None,
            Some(name) if program.inherit_env || is_inherited(name) => {
                without_credentials(name, value)
            }
            Some(_) => None,
            None => program.inherit_env.then_some(value),
        };
        Some((name, value?))
    };
    variables.extend(ours.into_iter().filter_map(inherited));
    // Otherwise Python uses the locale's encoding. A service often has none, and a server would
    // fail at the first character that isn't ASCII.
    variables.insert("PYTHONUTF8".into(), "1".into());
    let named = program.env.iter();
    variables.extend(named.map(|(name, value)| (name.into(), value.into())));
    variables
}

/// Returns the PATH among these variables.
pub(super) fn path(variables: &BTreeMap<OsString, OsString>) -> &OsStr {
    variables
        .get(OsStr::new("PATH"))
        .map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str)
}

fn is_inherited(name: &str) -> bool {
    is_listed(INHERITED, name)
        || is_listed(PROXIES, &name.to_ascii_uppercase())
        || INHERITED_PREFIXES
            .split(' ')
            .any(|prefix| name.starts_with(prefix))
}

fn is_never_inherited(name: &str) -> bool {
    name.starts_with(OWN_PREFIX) || is_listed(MODEL_KEYS, name)
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split(' ').any(|entry| entry == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables_for(
        ours: &[(&str, &str)],
        named: &[(&str, &str)],
        inherit_env: bool,
    ) -> Vec<String> {
        let program = ServerProgram {
            env: named
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            inherit_env,
            ..ServerProgram::default()
        };
        let ours = ours.iter().map(|(name, value)| (name.into(), value.into()));
        build(&program, ours)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn a_server_inherits_basic_variables_and_gets_configured_ones() {
        let usual = "PATH=/usr/local/bin:/usr/bin:/bin";
        let utf8 = "PYTHONUTF8=1";
        for (ours, named, inherit, expected) in [
            (&[][..], &[][..], false, vec![usual, utf8]),
            (
                &[("PATH", "/p"), ("HOME", "/h")],
                &[],
                false,
                vec!["HOME=/h", "PATH=/p", utf8],
            ),
            (
                &[("PATH", "/p")],
                &[("PATH", "/q")],
                false,
                vec!["PATH=/q", utf8],
            ),
            (
                &[("SECRET", "s"), ("LD_PRELOAD", "x")],
                &[],
                false,
                vec![usual, utf8],
            ),
            (&[("SECRET", "s")], &[], true, vec![usual, utf8, "SECRET=s"]),
            (
                &[
                    ("LC_ALL", "C"),
                    ("XDG_CACHE_HOME", "/c"),
                    ("UV_INDEX", "u"),
                    ("PIP_PROXY", "p"),
                ],
                &[],
                false,
                vec![
                    "LC_ALL=C",
                    usual,
                    "PIP_PROXY=p",
                    utf8,
                    "UV_INDEX=u",
                    "XDG_CACHE_HOME=/c",
                ],
            ),
            (
                &[
                    ("npm_config_registry", "r"),
                    ("https_proxy", "h"),
                    ("NO_PROXY", "n"),
                ],
                &[],
                false,
                vec![
                    "NO_PROXY=n",
                    usual,
                    utf8,
                    "https_proxy=h",
                    "npm_config_registry=r",
                ],
            ),
            (&[("OPENAI_API_KEY", "k")], &[], true, vec![usual, utf8]),
            (&[("ANTHROPIC_API_KEY", "k")], &[], false, vec![usual, utf8]),
            (
                &[("OPENAI_API_KEY", "k")],
                &[("OPENAI_API_KEY", "named")],
                true,
                vec!["OPENAI_API_KEY=named", usual, utf8],
            ),
            (
                &[("PIP_INDEX_URL", "https://u:p@h.org/simple")],
                &[("UV_PUBLISH_TOKEN", "named")],
                false,
                vec![
                    usual,
                    "PIP_INDEX_URL=https://h.org/simple",
                    utf8,
                    "UV_PUBLISH_TOKEN=named",
                ],
            ),
            (
                &[("PYTHONUTF8", "0")],
                &[("PYTHONUTF8", "0")],
                true,
                vec![usual, "PYTHONUTF8=0"],
            ),
        ] {
            assert_eq!(
                variables_for(ours, named, inherit),
                expected,
                "{ours:?} {named:?} {inherit}"
            );
        }
    }

    #[test]
    fn no_key_is_ever_inherited() {
        let credentials = [
            "TOOLGATE_TOKEN",
            "UV_PUBLISH_TOKEN",
            "NPM_CONFIG__AUTH",
            "NPM_TOKEN",
        ];
        for key in MODEL_KEYS.split(' ').chain(credentials) {
            for inherit in [false, true] {
                let variables = variables_for(&[(key, "k")], &[], inherit);
                assert!(!variables.concat().contains(key), "{key} {inherit}");
            }
        }
    }
}
