//! `toolgate health`: whether a gateway takes calls, for containers, load balancers and scripts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use toolgate_core::escape;

use crate::cli::{Global, HealthOptions, RemoteOptions};
use crate::config::Uses;
use crate::exit::Exit;
use crate::remote::Remote;
use crate::{gateway, say, wiring};

/// A gateway that takes longer to say that it is well is not well.
const PATIENCE: Duration = Duration::from_secs(5);

/// Never exits with 2, which Docker keeps for itself: what can't be asked is not healthy either.
pub(crate) fn run(global: &Global, options: &HealthOptions) -> anyhow::Result<Exit> {
    let asked = url(global, options).and_then(|url| {
        let runtime = super::runtime().context("cannot start")?;
        runtime.block_on(ask(url))
    });
    Ok(match asked {
        Ok((is_well, line)) => {
            say::text(&line);
            match is_well {
                true => Exit::Success,
                false => Exit::Failure,
            }
        }
        Err(error) => {
            say::error(&error);
            Exit::Failure
        }
    })
}

fn url(global: &Global, options: &HealthOptions) -> anyhow::Result<String> {
    if let Some(url) = &options.url {
        return Ok(url.clone());
    }
    let bind = wiring::configuration(global, Uses::Names)?.serve.bind;
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(gateway::url(SocketAddr::new(ip, bind.port())))
}

/// Whether the gateway takes calls, and how it is in one line.
async fn ask(url: String) -> anyhow::Result<(bool, String)> {
    let options = RemoteOptions {
        at: Some(url),
        token: None,
    };
    let Some(remote) = Remote::of(&options)? else {
        bail!("no address");
    };
    let answer = tokio::time::timeout(PATIENCE, remote.get(&["readyz"], &[]));
    let Ok(answer) = answer.await else {
        bail!("no answer within {} s", PATIENCE.as_secs());
    };
    let answer = answer?;
    let Some(status) = answer.body["status"].as_str() else {
        bail!("what answers there is not a Toolgate gateway");
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
