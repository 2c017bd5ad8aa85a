//! Who asks, and which revision of MCP the client speaks.

use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};

use super::McpHttp;
use super::headers;
use super::reply::Refusal;
use super::table::InUse;

/// What a request of 2026-07-28 says about itself.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Who asks.
pub(super) enum Asker {
    Session(InUse),
    /// Every request stands alone; true if its answer has the form of 2026-07-28.
    Alone(bool),
}

impl McpHttp {
    /// Finds out who asks, and refuses what contradicts itself.
    pub(super) fn asker(
        &self,
        headers: &HeaderMap,
        method: &str,
        meta: &RequestMetaObject,
        owner: u64,
    ) -> Result<Asker, Refusal> {
        let in_body = meta.get(META_VERSION).and_then(Value::as_str);
        let stands_alone = in_body.is_some() || method == "server/discover" || is_modern(headers);
        if stands_alone {
            let modern = version_alone(headers, meta, in_body)?;
            headers::check_method(headers, method, true).map_err(Refusal::mismatch)?;
            return Ok(Asker::Alone(modern));
        }
        headers::check_method(headers, method, false).map_err(Refusal::mismatch)?;
        known_version(headers)?;
        let session = self.shared.sessions.find(headers, owner)?;
        Ok(Asker::Session(session))
    }
}

/// True if the client says that it speaks a revision without sessions.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers::version(headers).ok().flatten();
    version.is_some_and(|version| version == ProtocolVersion::V_2026_07_28.as_str())
}

/// The revision a client says it speaks, if it says so.
pub(super) fn known_version(
    headers: &HeaderMap,
) -> Result<Option<&'static ProtocolVersion>, Refusal> {
    let Some(said) = headers::version(headers).map_err(Refusal::bad_request)? else {
        return Ok(None);
    };
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    match known.find(|known| known.as_str() == said) {
        Some(version) => Ok(Some(version)),
        None => Err(unsupported(said)),
    }
}

/// The revision of a request that stands alone: whether it is at least 2026-07-28.
fn version_alone(
    headers: &HeaderMap,
    meta: &RequestMetaObject,
    in_body: Option<&str>,
) -> Result<bool, Refusal> {
    let in_header = headers::version(headers).map_err(Refusal::mismatch)?;
    let Some(version) = in_body else {
        known_version(headers)?;
        return Err(incomplete(&[META_VERSION, META_CAPABILITIES], meta));
    };
    match in_header {
        None => {
            let text = "the header MCP-Protocol-Version is missing; the body has a revision";
            return Err(Refusal::mismatch(text));
        }
        Some(said) if said != version => {
            let text = "the header MCP-Protocol-Version names another revision than the body";
            return Err(Refusal::mismatch(text));
        }
        Some(_) => {}
    }
    if known_version(headers).is_err() {
        return Err(unsupported(version));
    }
    if !meta.get(META_CAPABILITIES).is_some_and(Value::is_object) {
        return Err(incomplete(&[META_CAPABILITIES], meta));
    }
    Ok(version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn incomplete(needed: &[&str], meta: &RequestMetaObject) -> Refusal {
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|key| !meta.contains_key(*key))
        .collect();
    let missing = if missing.is_empty() { needed } else { &missing };
    let text = format!(
        "request _meta is missing or has malformed required fields: {}",
        missing.join(", ")
    );
    Refusal::new(
        StatusCode::BAD_REQUEST,
        ErrorData::invalid_params(text, None),
    )
}

fn unsupported(version: &str) -> Refusal {
    let data = json!({
        "requested": version,
        "supported": ProtocolVersion::KNOWN_VERSIONS,
    });
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let error = ErrorData::new(code, "Unsupported protocol version", Some(data));
    Refusal::new(StatusCode::BAD_REQUEST, error)
}
