//! Recognizes addresses of this machine.

use std::net::IpAddr;

use reqwest::Url;

/// True if a request to `url` stays on this machine, so that it needs no proxy and can't
/// be read in transit.
pub fn is_local_url(url: &Url) -> bool {
    url.host_str().is_some_and(is_local_host)
}

/// True for hosts that are this machine: loopback and unspecified addresses, and
/// `localhost` with its subdomains.
///
/// Loopback addresses include IPv4-mapped ones. Servers print the unspecified addresses `0.0.0.0`
/// and `::` when they start, people copy them, and a connection to them reaches this machine.
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
    fn all_names_of_this_machine_are_recognized() {
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
    fn hosts_without_a_url_are_recognized() {
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
