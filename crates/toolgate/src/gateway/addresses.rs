//! The addresses and names of a gateway.

use std::net::{IpAddr, SocketAddr};

use toolgate_core::text::escape;

use super::url;

pub(crate) fn reachable_urls(address: SocketAddr, hosts: &[String]) -> Vec<String> {
    let mut reached = vec![url(address)];
    if address.ip().is_unspecified() {
        reached.extend(own_addresses(address));
    } else if address.ip().is_loopback() {
        reached.push(format!("http://localhost:{}", address.port()));
    }
    reached.extend(hosts.iter().map(|host| escape(host)));
    reached.dedup();
    reached
}

// The addresses of this machine. Link-local ones are left out, because they need the name of a
// link, which no `Host` header has.
fn own_addresses(address: SocketAddr) -> Vec<String> {
    let found = if_addrs::get_if_addrs().unwrap_or_default();
    let is_link_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let ips = found.into_iter().map(|interface| interface.ip());
    ips.filter(|ip| !is_link_local(ip) && (address.is_ipv6() || ip.is_ipv4()))
        .map(|ip| format!("http://{}", SocketAddr::new(ip, address.port())))
        .collect()
}

pub(crate) fn host_names_hint(address: SocketAddr, hosts: &[String]) -> Option<String> {
    if address.ip().is_loopback() {
        return None;
    }
    let names = match hosts.is_empty() {
        true => "alone",
        false => "or by a name in serve.hosts",
    };
    Some(format!(
        "other machines get in by an address in numbers {names}; to add a name: \"serve\": {{ \"hosts\": [\"tools.example.org\"] }} in the configuration"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_and_names_are_listed() {
        let hosts = ["tools.example.org".to_owned()];
        let at = |address: &str| reachable_urls(address.parse().unwrap(), &hosts);
        assert_eq!(
            at("127.0.0.1:7460"),
            [
                "http://127.0.0.1:7460",
                "http://localhost:7460",
                "tools.example.org"
            ]
        );
        let everywhere = at("0.0.0.0:7460");
        assert_eq!(everywhere[0], "http://localhost:7460");
        assert!(
            everywhere.contains(&"http://127.0.0.1:7460".to_owned()),
            "{everywhere:?}"
        );
        assert!(
            everywhere.iter().all(|url| !url.contains('[')),
            "{everywhere:?}"
        );
        let both = at("[::]:7460");
        assert!(
            both.contains(&"http://127.0.0.1:7460".to_owned()),
            "{both:?}"
        );
    }
}
