//! Decides which addresses are this machine.

use std::net::IpAddr;

use reqwest::Url;

/// True if a request to `url` stays on this machine: no proxy is needed to reach it, and nobody in
/// between can read it.
pub fn is_local_url(url: &Url) -> bool {
    url.host_str().is_some_and(is_local_host)
}

/// True for hosts that are this machine: loopback addresses, including IPv4-mapped ones;
/// `localhost` and the names below it, which are reserved for that; and the unspecified addresses
/// `0.0.0.0` and `::`. People copy the latter from where a server says it listens, and a connection
/// to them reaches this machine.
///
/// Names aren't resolved: the answer could change between this check and the request.
pub fn is_local_host(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match ip.map(|ip| ip.to_canonical()) {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => {
            let host = host.to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for (url, local) in [
            ("http://localhost:11434", true),
            ("http://localhost:3000/mcp", true),
            ("http://LOCALHOST/", true),
            ("http://a.localhost/", true),
            ("http://127.0.0.1/", true),
            ("http://127.9.9.9/", true),
            ("http://0x7f000001/", true),
            ("http://0.0.0.0:11434/", true),
            ("http://[::]:11434/", true),
            ("http://[::1]:1/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example.com/", false),
            ("http://notlocalhost/", false),
            ("http://127.0.0.1.example.com/", false),
            ("http://192.168.0.1/", false),
            ("http://[fe80::1]/", false),
            ("https://example.com/", false),
            ("unix:/run/socket", false),
        ] {
            assert_eq!(is_local_url(&url.parse().unwrap()), local, "{url}");
        }
    }

    #[test]
    fn hosts_outside_urls_get_the_same_answer() {
        for (host, local) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("0.0.0.0", true),
            ("::1", true),
            ("::", true),
            ("", false),
            ("speech.lan", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_local_host(host), local, "{host}");
        }
    }
}
