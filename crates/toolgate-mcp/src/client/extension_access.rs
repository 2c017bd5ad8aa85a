//! Decides which messages of a server's extensions a call's client may get.

use toolgate_core::{CallContext, ToolSource};

use crate::extensions::{may_be_extension_name, may_define_notification, may_have_requests};

/// True if the client of this call may get a request, or a kind of result, of this name: it shares
/// an extension with the server that can define it, and may use the server's extensions.
pub(super) fn shares_extension(call: &CallContext, server: &str, name: &str) -> bool {
    may_be_extension_name(name) && shares(call, server, name, |_| true)
}

/// Like [`shares_extension`], for a notification.
pub(super) fn shares_notification(call: &CallContext, server: &str, name: &str) -> bool {
    shares(call, server, name, |id| may_define_notification(id, name))
}

fn shares(call: &CallContext, server: &str, name: &str, can_define: impl Fn(&str) -> bool) -> bool {
    let Some(declared) = call.extensions() else {
        return false;
    };
    let is_shared = |id: &str| may_have_requests(id) && declared.contains_key(id) && can_define(id);
    let source = ToolSource::Mcp(server.to_owned());
    let (executor, scope) = (call.executor(), call.scope());
    executor.may_get_extension_message(&source, name, scope, is_shared)
}
