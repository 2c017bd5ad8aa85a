//! Decides which source owns a resource URI, and builds the URIs that address other sources.
//!
//! A scheme belongs to the first source that lists a resource or a template with it. That source's
//! URIs stay as they are. Any other source's URI is offered as `toolgate://<server>/<uri>`, which
//! always means this server. So no server can answer for a URI of another, whatever it lists.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The scheme of addresses that name their server.
const OWN_SCHEME: &str = "toolgate";
/// Addresses that name their server keep these schemes: hosts of MCP Apps require `ui`, and the
/// extension for skills recommends `skill`.
const KEPT_SCHEMES: [&str; 2] = ["ui", "skill"];
/// What follows a kept scheme where the address names its server.
const KEPT_PREFIX: &str = "://toolgate/";

/// The lower-case scheme; `None` if the text is not a URI, or belongs to nobody because it has the
/// form of an address that names its server.
pub(crate) fn ownable_scheme(uri: &str) -> Option<Cow<'_, str>> {
    let (scheme, rest) = uri.split_once(':')?;
    let is_scheme_char = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let starts_with_letter = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    if !starts_with_letter || !scheme.bytes().all(is_scheme_char) {
        return None;
    }
    let is_lower = !scheme.bytes().any(|byte| byte.is_ascii_uppercase());
    let scheme = match is_lower {
        true => Cow::Borrowed(scheme),
        false => Cow::Owned(scheme.to_ascii_lowercase()),
    };
    let is_kept = || KEPT_SCHEMES.contains(&&*scheme);
    let is_reserved = scheme == OWN_SCHEME || is_kept() && rest.starts_with(&KEPT_PREFIX[1..]);
    (!is_reserved).then_some(scheme)
}

/// True if clients fetch such a URI from the web rather than from its server.
pub(crate) fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https")
}

/// The address of a server's URI that names the server. Also works for URI templates.
pub(crate) fn with_server(server: &str, uri: &str) -> String {
    let server = encode(server);
    let kept = uri.split_once("://").and_then(|(scheme, rest)| {
        let kept = KEPT_SCHEMES
            .iter()
            .find(|kept| scheme.eq_ignore_ascii_case(kept))?;
        Some((kept, rest))
    });
    match kept {
        Some((scheme, rest)) => format!("{scheme}{KEPT_PREFIX}{server}/{rest}"),
        None => format!("{OWN_SCHEME}://{server}/{uri}"),
    }
}

/// Splits an address that names its server into the encoded server and the server's own URI.
pub(crate) fn split_server(address: &str) -> Option<(&str, Cow<'_, str>)> {
    for scheme in KEPT_SCHEMES {
        let rest = address.strip_prefix(scheme);
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(KEPT_PREFIX)) {
            let (server, rest) = rest.split_once('/')?;
            return Some((server, Cow::Owned(format!("{scheme}://{rest}"))));
        }
    }
    let rest = address.strip_prefix(OWN_SCHEME)?.strip_prefix("://")?;
    let (server, uri) = rest.split_once('/')?;
    Some((server, Cow::Borrowed(uri)))
}

/// Percent-encodes everything but letters, digits and `-._~`, so that a server's name is one path
/// segment and never part of a template.
pub(crate) fn encode(server: &str) -> Cow<'_, str> {
    const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(server, SEGMENT).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_found_and_reserved_ones_belong_to_nobody() {
        for (uri, scheme) in [
            ("file:///a", Some("file")),
            ("FILE:///a", Some("file")),
            ("git+ssh://x", Some("git+ssh")),
            ("{scheme}://x", None),
            ("notes", None),
            ("1a:b", None),
            (":x", None),
            ("", None),
            ("toolgate://a/b", None),
            ("ToolGate:x", None),
            ("ui://a/b", Some("ui")),
            ("ui://toolgate/a/b", None),
            ("skill://a/SKILL.md", Some("skill")),
            ("skill://toolgate/a/b/SKILL.md", None),
        ] {
            assert_eq!(ownable_scheme(uri).as_deref(), scheme, "{uri}");
        }
    }

    #[test]
    fn a_prefixed_address_maps_back_to_its_uri() {
        for (server, uri, address) in [
            (
                "files",
                "file:///a b?c#d",
                "toolgate://files/file:///a b?c#d",
            ),
            (
                "my server/ä",
                "x:{id}",
                "toolgate://my%20server%2F%C3%A4/x:{id}",
            ),
            ("{a}", "x:1", "toolgate://%7Ba%7D/x:1"),
            ("maps", "ui://view/main", "ui://toolgate/maps/view/main"),
            (
                "maps",
                "toolgate://b/c:d",
                "toolgate://maps/toolgate://b/c:d",
            ),
            (
                "maps",
                "ui://toolgate/b/c",
                "ui://toolgate/maps/toolgate/b/c",
            ),
            (
                "maps",
                "skill://a/b/SKILL.md",
                "skill://toolgate/maps/a/b/SKILL.md",
            ),
            ("a", "", "toolgate://a/"),
        ] {
            assert_eq!(with_server(server, uri), address);
            let (encoded, own) = split_server(address).unwrap();
            assert_eq!((encoded, &*own), (&*encode(server), uri));
        }
        for other in [
            "toolgate:",
            "toolgate://a",
            "ui://toolgate/a",
            "file:///a",
            "",
        ] {
            assert_eq!(split_server(other), None, "{other}");
        }
    }
}
