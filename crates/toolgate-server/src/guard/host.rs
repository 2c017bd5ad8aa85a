//! Checks that a request addresses this gateway by one of its own names. With DNS rebinding, a
//! foreign page can make a browser connect here, but the `Host` header then has the foreign name.

use std::net::{IpAddr, SocketAddr};

pub(super) struct AllowedHosts {
    port: u16,
    // `None` if the gateway listens on all addresses. Then the local address of the connection
    // counts.
    bind: Option<IpAddr>,
    listed: Vec<(Box<str>, Option<u16>)>,
    // The `Host` headers of nearly all requests, compared first.
    usual: [String; 2],
}

impl AllowedHosts {
    pub(super) fn new(bind: SocketAddr, hosts: &[String]) -> Self {
        let listed = hosts.iter().filter_map(|host| {
            let (name, port) = split(host)?;
            Some((name.to_ascii_lowercase().into(), port))
        });
        let ip = bind.ip().to_canonical();
        Self {
            port: bind.port(),
            bind: (!ip.is_unspecified()).then_some(ip),
            listed: listed.collect(),
            usual: [bind.to_string(), format!("localhost:{}", bind.port())],
        }
    }

    /// True if `authority`, as in a `Host` header, is ours. `local` is the local
    /// address of the connection.
    pub(super) fn allows(&self, authority: &str, local: IpAddr) -> bool {
        if self.usual.iter().any(|usual| usual == authority) {
            return true;
        }
        let Some((name, port)) = split(authority) else {
            return false;
        };
        let is_our_port = port.is_none_or(|port| port == self.port);
        let is_listed = |(host, only): &(Box<str>, Option<u16>)| {
            host.eq_ignore_ascii_case(name)
                && only.is_none_or(|only| port.is_none_or(|port| port == only))
        };
        is_our_port && self.is_this_machine(name, local) || self.listed.iter().any(is_listed)
    }

    /// True if a page of this origin is our own. Unlike a `Host` header, an origin must
    /// match in its port.
    pub(super) fn is_own_page(&self, authority: &str, usual_port: u16, local: IpAddr) -> bool {
        let Some((name, port)) = split(authority) else {
            return false;
        };
        let port = port.unwrap_or(usual_port);
        let is_listed = |(host, only): &(Box<str>, Option<u16>)| {
            let is_port = match only {
                Some(only) => *only == port,
                None => port == usual_port || port == self.port,
            };
            is_port && host.eq_ignore_ascii_case(name)
        };
        port == self.port && self.is_this_machine(name, local) || self.listed.iter().any(is_listed)
    }

    fn is_this_machine(&self, name: &str, local: IpAddr) -> bool {
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        // DNS can't make a numeric address point elsewhere.
        address(name).is_some_and(|ip| ip.is_loopback() || ip == self.bind.unwrap_or(local))
    }
}

fn address(name: &str) -> Option<IpAddr> {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let ip = match bare {
        Some(v6) => IpAddr::V6(v6.parse().ok()?),
        None => IpAddr::V4(name.parse().ok()?),
    };
    Some(ip.to_canonical())
}

/// Splits into name and port, or returns `None` if the text is malformed.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (name, rest) = authority.split_at(end);
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        _ => return None,
    };
    (!name.is_empty()).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(bind: &str, listed: &[&str]) -> AllowedHosts {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        AllowedHosts::new(bind.parse().unwrap(), &listed)
    }

    #[test]
    fn only_our_own_hosts_are_allowed() {
        let local = hosts(
            "127.0.0.1:7460",
            &["tools.example.org", "pinned.example.org:8443"],
        );
        let table = [
            ("127.0.0.1:7460", true),
            ("localhost:7460", true),
            ("LocalHost:7460", true),
            ("localhost", true),
            ("127.8.9.1:7460", true),
            ("[::1]:7460", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]:7460", true),
            ("tools.example.org", true),
            ("TOOLS.example.org:443", true),
            ("pinned.example.org:8443", true),
            ("pinned.example.org", true),
            ("pinned.example.org:1", false),
            ("localhost:7461", false),
            ("127.0.0.1:80", false),
            ("evil.test", false),
            ("evil.test:7460", false),
            ("localhost.evil.test:7460", false),
            ("127.0.0.1.evil.test", false),
            ("evil.test#localhost", false),
            ("localhost@evil.test", false),
            ("evil.test@localhost:7460", false),
            ("localhost:7460:7460", false),
            ("localhost:", false),
            ("localhost:+7460", false),
            ("localhost:99999", false),
            ("localhost.", false),
            ("0.0.0.0:7460", false),
            ("192.168.1.5:7460", false),
            ("0x7f000001:7460", false),
            ("2130706433", false),
            ("[::1", false),
            ("::1", false),
            ("[evil.test]:7460", false),
            ("", false),
            (":7460", false),
        ];
        for (host, ours) in table {
            assert_eq!(local.allows(host, [127, 0, 0, 1].into()), ours, "{host:?}");
        }
    }

    #[test]
    fn when_listening_on_all_addresses_the_local_one_is_ours() {
        let public = hosts("0.0.0.0:7460", &[]);
        let local: IpAddr = [192, 168, 1, 5].into();
        assert!(public.allows("192.168.1.5:7460", local));
        assert!(!public.allows("192.168.1.6:7460", local));
        assert!(!public.allows("evil.test:7460", local));
        let one = hosts("192.168.1.5:7460", &[]);
        assert!(one.allows("192.168.1.5", local) && one.allows("localhost:7460", local));
    }

    #[test]
    fn a_page_is_ours_only_on_our_port() {
        let hosts = hosts(
            "127.0.0.1:7460",
            &["tools.example.org", "pinned.example.org:8443"],
        );
        let table = [
            ("localhost:7460", 80, true),
            ("127.0.0.1:7460", 80, true),
            ("localhost", 80, false),
            ("localhost:3000", 80, false),
            ("tools.example.org", 443, true),
            ("tools.example.org:7460", 80, true),
            ("tools.example.org:3000", 80, false),
            ("pinned.example.org:8443", 443, true),
            ("pinned.example.org", 443, false),
            ("evil.test", 443, false),
        ];
        for (authority, usual, ours) in table {
            assert_eq!(
                hosts.is_own_page(authority, usual, [127, 0, 0, 1].into()),
                ours,
                "{authority:?}"
            );
        }
    }
}
