//! Normalizes the addresses that people configure into base URLs for the clients.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::Provider;

const OLLAMA_PORT: u16 = 11434;

/// The base URL of a provider, without the path that the client adds and without a trailing slash.
/// An empty `text` means the provider's default. The error is a sentence for a person.
pub(crate) fn normalize_url(provider: Provider, text: &str) -> Result<String, String> {
    let entry = provider.entry();
    match text.trim().trim_matches(['"', '\'']).trim() {
        "" => Ok(entry.url.to_owned()),
        text => (entry.normalize_url)(text),
    }
}

pub(crate) fn strip_api_path(text: &str, ends: &[&str]) -> Result<String, String> {
    Ok(without_path(&parse_url(text)?, ends))
}

pub(crate) fn openai(text: &str) -> Result<String, String> {
    let url = parse_url(text)?;
    let base = without_path(&url, &["/chat/completions"]);
    // Nearly all servers have the API under `/v1`, and those that have it at the root have both.
    let is_bare = matches!(url.path(), "" | "/" | "/chat/completions");
    Ok(if is_bare { format!("{base}/v1") } else { base })
}

fn ip(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_matches(['[', ']']).parse().ok()
}

fn parse_url(text: &str) -> Result<Url, String> {
    let shown = crate::settings::display_url(text);
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| format!("'{shown}' is not an address; write it like http://host:port"))
}

fn without_path(url: &Url, ends: &[&str]) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    let path = ends
        .iter()
        .find_map(|end| path.strip_suffix(end))
        .unwrap_or(&path);
    url.set_path(path.trim_end_matches('/'));
    url.as_str().trim_end_matches('/').to_owned()
}

// The Ollama server reads `OLLAMA_HOST` as its listen address, so it may be `host`, `host:port`,
// `:port`, a URL, or an unspecified address such as `0.0.0.0`, which becomes loopback.
pub(crate) fn ollama(text: &str) -> Result<String, String> {
    let bare = !text.contains("://");
    let with_scheme = match text {
        _ if !bare => text.to_owned(),
        // An IPv6 address without its brackets.
        _ if text.parse::<Ipv6Addr>().is_ok() => format!("http://[{text}]"),
        _ if text.starts_with(':') => format!("http://127.0.0.1{text}"),
        _ => format!("http://{text}"),
    };
    let mut url = parse_url(&with_scheme)?;
    if let Some(ip) = ip(&url).filter(IpAddr::is_unspecified) {
        let loopback = match ip {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        url.set_ip_host(loopback)
            .map_err(|()| "it has no host".to_owned())?;
    }
    if bare && url.port().is_none() {
        url.set_port(Some(OLLAMA_PORT))
            .map_err(|()| "it has no host".to_owned())?;
    }
    Ok(without_path(&url, &["/api/chat", "/api"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalized() {
        use Provider::{Anthropic, Ollama, OpenAi};
        for (provider, text, expected) in [
            (Ollama, "", "http://127.0.0.1:11434"),
            (Ollama, "nas", "http://nas:11434"),
            (Ollama, "nas:8000", "http://nas:8000"),
            (Ollama, ":8000", "http://127.0.0.1:8000"),
            (Ollama, "http://nas:8000", "http://nas:8000"),
            (Ollama, "http://nas:8000/", "http://nas:8000"),
            (Ollama, "http://nas:8000/api/chat", "http://nas:8000"),
            (Ollama, "http://nas", "http://nas"),
            (Ollama, "https://ollama.example", "https://ollama.example"),
            (Ollama, "https://host/ollama/", "https://host/ollama"),
            (Ollama, "0.0.0.0", "http://127.0.0.1:11434"),
            (Ollama, "0.0.0.0:8000", "http://127.0.0.1:8000"),
            (Ollama, "http://0.0.0.0:8000", "http://127.0.0.1:8000"),
            (Ollama, "[::]:8000", "http://[::1]:8000"),
            (Ollama, "::1", "http://[::1]:11434"),
            (Ollama, " \"nas\" ", "http://nas:11434"),
            (Ollama, "http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
            (Ollama, "https://h/ollama", "https://h/ollama"),
            (Ollama, "nas/ollama", "http://nas:11434/ollama"),
            (Ollama, "[::]:11434", "http://[::1]:11434"),
            (Ollama, "[::1]", "http://[::1]:11434"),
            (Anthropic, "", "https://api.anthropic.com"),
            (Anthropic, "http://h:1", "http://h:1"),
            (Anthropic, "http://h:1/", "http://h:1"),
            (Anthropic, "http://h:1/v1", "http://h:1"),
            (Anthropic, "http://h:1/v1/", "http://h:1"),
            (Anthropic, "http://h:1/v1/messages", "http://h:1"),
            (Anthropic, "http://h:1/proxy/v1/", "http://h:1/proxy"),
            (OpenAi, "", "https://api.openai.com/v1"),
            (OpenAi, "http://h:1/v1", "http://h:1/v1"),
            (OpenAi, "http://h:1/v1/", "http://h:1/v1"),
            (OpenAi, "http://h:1/v1/chat/completions", "http://h:1/v1"),
            (OpenAi, "http://h:1", "http://h:1/v1"),
            (OpenAi, "http://h:1/chat/completions", "http://h:1/v1"),
            (OpenAi, "http://h:1/openai/v1", "http://h:1/openai/v1"),
            (
                OpenAi,
                "http://h:1/v1/?version=2#x",
                "http://h:1/v1?version=2",
            ),
        ] {
            assert_eq!(
                normalize_url(provider, text),
                Ok(expected.to_owned()),
                "{provider} {text}"
            );
        }
    }

    #[test]
    fn an_invalid_address_is_reported_without_its_login() {
        for (provider, text) in [
            (Provider::Anthropic, "localhost:8080"),
            (Provider::OpenAi, "host/v1"),
            (Provider::OpenAi, "ftp://ada:pa55@host"),
            (Provider::Ollama, "http://"),
            (Provider::Ollama, "a b"),
        ] {
            let error = normalize_url(provider, text).unwrap_err();
            assert!(
                error.contains("is not an address") && !error.contains("pa55"),
                "{error}"
            );
        }
    }
}
