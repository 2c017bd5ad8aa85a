//! `toolgate health`: tells containers, load balancers and scripts whether a gateway takes calls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use toolgate_core::text::escape;

use crate::cli::{GlobalOptions, HealthOptions, RemoteOptions};
use crate::config::SecretScope;
use crate::exit::Exit;
use crate::remote::RemoteGateway;
use crate::{gateway, output, wiring};

// A gateway that needs longer to answer isn't healthy.
const TIMEOUT: Duration = Duration::from_secs(5);

// Never exits with 2, which Docker reserves. A gateway that can't be asked isn't healthy either.
pub(crate) fn run(global: &GlobalOptions, options: &HealthOptions) -> anyhow::Result<Exit> {
    let asked = url(global, options).and_then(|url| super::block_on(ask(url))?);
    Ok(match asked {
        Ok((is_well, line)) => {
            output::print_text(&line);
            Exit::success_if(is_well)
        }
        Err(error) => {
            output::print_error(&error);
            Exit::Failure
        }
    })
}

fn url(global: &GlobalOptions, options: &HealthOptions) -> anyhow::Result<String> {
    if let Some(url) = &options.url {
        return Ok(url.clone());
    }
    let bind = wiring::load_config(global, SecretScope::Names)?.serve.bind;
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(gateway::url(SocketAddr::new(ip, bind.port())))
}

async fn ask(url: String) -> anyhow::Result<(bool, String)> {
    let options = RemoteOptions {
        at: Some(url),
        token: None,
    };
    let Some(remote) = RemoteGateway::from_options(&options)? else {
        bail!("no address");
    };
    let answer = tokio::time::timeout(TIMEOUT, remote.get(&["readyz"], &[]));
    let Ok(answer) = answer.await else {
        bail!("no answer within {} s", TIMEOUT.as_secs());
    };
    let answer = answer?;
    let Some(status) = answer.body["status"].as_str() else {
        bail!("the server at this address is not a Toolgate gateway");
    };
    let reasons = answer.body["reasons"].as_array();
    let reasons: Vec<&str> = reasons
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let line = match reasons.is_empty() {
        true => escape(status),
        false => escape(&format!("{status}: {}", reasons.join("; "))),
    };
    Ok((answer.status.is_success(), line))
}
