//! Adding an MCP server over HTTP: only one that is reached by a URL, and only where that is allowed.

use std::net::{IpAddr, Ipv6Addr};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::extract::{Sent, Unreadable};
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;
use crate::{Gateway, Right};

/// A server to add. Only what is reached by a URL can be added over HTTP.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NewServer {
    /// What it is to be called.
    #[schema(example = "weather")]
    name: String,
    /// Where it is, beginning with http:// or https://.
    #[schema(example = "https://example.org/mcp")]
    url: Option<String>,
    /// Always refused: a command is added at the machine itself.
    #[schema(value_type = Option<String>)]
    command: Option<Value>,
    /// What an entry may have besides is not lost without a word.
    #[serde(flatten)]
    #[schema(ignore)]
    more: Map<String, Value>,
}

/// Where something that was added is now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Added {
    /// Its name.
    #[schema(example = "weather")]
    name: String,
    /// Where it is kept, in words.
    #[schema(example = "added to toolgate.jsonc")]
    kept: String,
}

/// Adds a server that is reached by a URL, if the configuration allows that.
#[utoipa::path(post, path = "/api/servers", tag = "servers", request_body = NewServer,
    responses((status = 201, description = "It is added", body = Added),
              (status = 403, description = "Adding servers is off (serve.addServers), it is a command, or the caller does not have the right to operate", body = Problem),
              (status = 409, description = "There is a server of that name", body = Problem),
              Unreadable,
              (status = 422, description = "The entry makes no sense", body = Problem),
              (status = 503, description = "There is no configuration file to keep it in", body = Problem)))]
pub(crate) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Sent(server): Sent<NewServer>,
) -> Result<Response, Problem> {
    let forbidden = |detail: String| Problem::new(StatusCode::FORBIDDEN, detail);
    let unfit = |detail: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    if server.command.is_some() {
        // Whoever can name a command can run anything: that is for people at the machine.
        return Err(forbidden(
            "a server that is a command is never added over HTTP; at the machine, 'toolgate add NAME COMMAND …' does it"
                .to_owned(),
        ));
    }
    let sight = Sight::new(&gateway, &caller);
    caller.expect(Right::Operate)?;
    if !gateway.parts().settings.add_servers {
        return Err(forbidden(
            "servers are not added over HTTP here; 'addServers' of 'serve' in the configuration allows it".to_owned(),
        ));
    }
    if let Some(key) = server.more.keys().next() {
        let key = toolgate_core::escape(key);
        return Err(unfit(&format!(
            "'{key}' can not be given over HTTP; 'toolgate add' at the machine takes it"
        )));
    }
    let url = server.url.ok_or_else(|| unfit("the entry has no 'url'"))?;
    check_entry(&server.name, &url).map_err(unfit)?;
    if sight
        .servers()
        .iter()
        .any(|other| other.name == server.name)
    {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "there is a server of that name; choose another",
        ));
    }
    let name = server.name.clone();
    let kept = gateway
        .keep(move |workshop| workshop.add_server(&server.name, &url))
        .await?;
    Ok((StatusCode::CREATED, Json(Added { name, kept })).into_response())
}

/// What is wrong with the name or the address of a server that is to be added.
fn check_entry(name: &str, url: &str) -> Result<(), &'static str> {
    let is_web = url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
    });
    if !is_web {
        return Err("'url' must begin with http:// or https:// and name a host");
    }
    if is_metadata(url) {
        return Err(
            "'url' names a link-local address, where clouds keep their credentials; 'toolgate add' at the machine takes it",
        );
    }
    if url.contains("${") {
        // Variables are for whoever writes the file: another's address must not be sent what stands in them.
        return Err("'url' must be the address itself, without ${…}");
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !(1..=100).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err("'name' must have 1 to 100 letters, digits, '_', '-' or '.'");
    }
    Ok(())
}

/// Addresses that only this machine reaches, and that answer with secrets of it.
fn is_metadata(url: &str) -> bool {
    const AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    // The client's own parser: an address has many spellings, such as http://2852039166/.
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_unicast_link_local() || ip == AWS,
        Err(_) => host.trim_end_matches('.') == "metadata.google.internal",
    }
}
