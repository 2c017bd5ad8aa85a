//! Adds an MCP server over HTTP. Only servers with a URL can be added, and only where
//! the configuration allows it.

use std::net::{IpAddr, Ipv6Addr};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::extract::{JsonBody, UnreadableResponses};
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::{ConfigWriter, Gateway, Right};

/// A server to add. Only servers with a URL can be added over HTTP.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NewServer {
    /// A name for the server.
    #[schema(example = "weather")]
    name: String,
    /// The server's URL, which begins with http:// or https://.
    #[schema(example = "https://example.org/mcp")]
    url: Option<String>,
    /// Always rejected: commands can only be added at the machine itself.
    #[schema(value_type = Option<String>)]
    command: Option<Value>,
    // Other settings are collected so that they are rejected instead of ignored.
    #[serde(flatten)]
    #[schema(ignore)]
    more: Map<String, Value>,
}

/// A server that was added.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AddedServer)]
pub(crate) struct AddedServer {
    /// The name of the server.
    #[schema(example = "weather")]
    name: String,
    /// Where it was saved, in words.
    #[schema(example = "added to toolgate.jsonc")]
    kept: String,
}

/// Adds a server by its URL, if the configuration allows it.
#[utoipa::path(post, path = "/api/servers", tag = "servers", request_body = NewServer,
    responses((status = 201, description = "It is added", body = AddedServer),
              (status = 403, description = "Adding servers is off (serve.addServers), it is a command, or the caller does not have the right to operate", body = Problem),
              (status = 409, description = "There is a server of that name", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The entry is not valid", body = Problem),
              (status = 503, description = "The gateway has no configuration file to save it in", body = Problem)))]
pub(crate) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    JsonBody(server): JsonBody<NewServer>,
) -> Result<Response, Problem> {
    if server.command.is_some() {
        // A command could run any program, so only people at the machine may add one.
        return Err(Problem::forbidden(
            "servers with a command can't be added over HTTP; use 'toolgate add NAME COMMAND …' at the machine",
        ));
    }
    caller.require(Right::Operate)?;
    if !gateway.parts.settings.add_servers {
        return Err(Problem::forbidden(
            "adding servers over HTTP is off; set 'addServers' of 'serve' in the configuration to allow it",
        ));
    }
    if let Some(key) = server.more.keys().next() {
        let key = toolgate_core::text::escape(key);
        return Err(Problem::unprocessable(format!(
            "'{key}' can't be set over HTTP; use 'toolgate add' at the machine"
        )));
    }
    let missing = || Problem::unprocessable("the entry has no 'url'");
    let url = server.url.ok_or_else(missing)?;
    check_entry(&server.name, &url).map_err(Problem::unprocessable)?;
    let servers = CallerView::new(&gateway, &caller).servers();
    if servers.iter().any(|other| other.name == server.name) {
        let detail = "a server of that name already exists; choose another";
        return Err(Problem::conflict(detail));
    }
    let name = server.name.clone();
    let write = move |config: &dyn ConfigWriter| config.add_server(&server.name, &url);
    let kept = gateway.write_config(write).await?;
    Ok((StatusCode::CREATED, Json(AddedServer { name, kept })).into_response())
}

fn check_entry(name: &str, url: &str) -> Result<(), &'static str> {
    let is_web = url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
    });
    if !is_web {
        return Err("'url' must begin with http:// or https:// and name a host");
    }
    if is_metadata(url) {
        return Err(
            "'url' names a link-local address, where clouds keep their credentials; use 'toolgate add' at the machine",
        );
    }
    if url.contains("${") {
        // Variables could send values from this machine's environment to a foreign address.
        return Err("'url' must be the address itself, without ${…}");
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !(1..=100).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err("'name' must have 1 to 100 letters, digits, '_', '-' or '.'");
    }
    Ok(())
}

// Cloud metadata services answer with credentials, to this machine only.
fn is_metadata(url: &str) -> bool {
    const AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    // Parsed with the client's own parser, because an address has many spellings, such as
    // http://2852039166/.
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
