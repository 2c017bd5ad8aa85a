//! What clients get of results that only they and a server understand.

use serde_json::{Map, Value, json};

use super::methods::{MethodResult, RequestLifecycle, SERVER_INFO};
use super::service::McpService;

/// Members of a tool's result that are ours to set, or that mean something only between
/// us and the server.
const OWN_RESULT_MEMBERS: [&str; 8] = [
    "_meta",
    "content",
    "inputRequests",
    "isError",
    "requestState",
    "resultType",
    "structuredContent",
    "task",
];
/// Members of a listed tool that are ours to set.
const OWN_TOOL_MEMBERS: [&str; 6] = [
    "description",
    "execution",
    "inputSchema",
    "name",
    "outputSchema",
    "title",
];

/// The members of a tool's result that nobody here knows; `None` if there are none.
pub(super) fn unknown_result_members(
    members: Option<Box<Map<String, Value>>>,
) -> Option<Box<Map<String, Value>>> {
    let mut members = members?;
    members.retain(|key, _| !OWN_RESULT_MEMBERS.contains(&key.as_str()));
    (!members.is_empty()).then_some(members)
}

pub(super) fn remove_own_tool_members(members: &mut Map<String, Value>) {
    members.retain(|key, _| !OWN_TOOL_MEMBERS.contains(&key.as_str()));
}

impl McpService {
    /// A result of a kind that an extension defines stays as its server sent it. In 2026-07-28, we
    /// say who passes it on.
    pub(super) fn extension_result(
        &self,
        mut result: Value,
        lifecycle: RequestLifecycle,
    ) -> MethodResult {
        if let Some(object) = result.as_object_mut().filter(|_| lifecycle.is_modern()) {
            self.add_server_info(object);
        }
        MethodResult::Json(result)
    }

    /// Says in a result's `_meta` who answers, whatever the server behind us says there.
    pub(super) fn add_server_info(&self, result: &mut Map<String, Value>) {
        let info = self.result_meta[SERVER_INFO].clone();
        match result.get_mut("_meta") {
            Some(Value::Object(meta)) => drop(meta.insert(SERVER_INFO.to_owned(), info)),
            _ => drop(result.insert("_meta".to_owned(), json!({ SERVER_INFO: info }))),
        }
    }
}
