//! Registers what a server offers. No other code adds it to the manager.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_core::{
    CallContext, SourceContent, Tool, ToolDefinition, ToolFuture, ToolManager, ToolRank,
    ToolSource, ValidArguments, WithheldReason,
};

/// The registration of one server. Rank and tools are set from different tasks, so
/// one lock guards both.
pub(crate) struct ToolRegistration {
    manager: Arc<ToolManager>,
    source: ToolSource,
    server: String,
    registered: Mutex<RegisteredTools>,
}

struct RegisteredTools {
    rank: ToolRank,
    tools: Vec<Arc<dyn Tool>>,
    withheld: HashMap<String, WithheldReason>,
    content: Option<Arc<SourceContent>>,
    // We have told the manager why the tools are missing.
    is_absence_reported: bool,
    // The server was reconfigured, and another registration has taken over.
    is_closed: bool,
}

impl ToolRegistration {
    pub(crate) fn new(manager: Arc<ToolManager>, server: &str, rank: ToolRank) -> Self {
        Self {
            manager,
            source: ToolSource::Mcp(server.to_owned()),
            server: server.to_owned(),
            registered: Mutex::new(RegisteredTools {
                rank,
                tools: Vec::new(),
                withheld: HashMap::new(),
                content: None,
                is_absence_reported: false,
                is_closed: false,
            }),
        }
    }

    /// Replaces the tools and the content; withheld tools are registered by name only. Returns how
    /// many tools are offered.
    pub(crate) fn offer(
        &self,
        tools: Vec<Arc<dyn Tool>>,
        withheld: HashMap<String, WithheldReason>,
        content: SourceContent,
    ) -> usize {
        let mut registered = self.registered.lock();
        if !registered.is_closed {
            registered.tools = tools;
            registered.withheld = withheld;
            registered.content = (!content.is_empty()).then(|| Arc::new(content));
            self.publish(&registered);
            self.publish_content(&registered);
            self.manager.set_absent_reason(&self.server, None);
            registered.is_absence_reported = false;
        }
        registered.offered_count()
    }

    pub(crate) fn withhold(&self, withheld: HashMap<String, WithheldReason>) -> usize {
        let mut registered = self.registered.lock();
        if !registered.is_closed {
            registered.withheld = withheld;
            self.publish(&registered);
        }
        registered.offered_count()
    }

    /// For a server that is down. Known tools stay, so that no other server takes their names. If
    /// there are none, lookups that name the server report the reason.
    pub(crate) fn set_absent_reason(&self, why: &str) {
        let mut registered = self.registered.lock();
        if registered.tools.is_empty() && !registered.is_closed {
            self.manager.set_absent_reason(&self.server, Some(why));
            registered.is_absence_reported = true;
        }
    }

    /// For a server that won't come back: removes its tools and our reason for their absence.
    pub(crate) fn clear(&self) {
        let mut registered = self.registered.lock();
        if registered.is_closed {
            return;
        }
        if !registered.tools.is_empty() {
            registered.tools.clear();
            self.publish(&registered);
        }
        registered.content = None;
        self.publish_content(&registered);
        // A reason set by others stays.
        if std::mem::take(&mut registered.is_absence_reported) {
            self.manager.set_absent_reason(&self.server, None);
        }
    }

    /// Freezes this registration, leaving the tools in place for the one that replaces it.
    pub(crate) fn close(&self) {
        self.registered.lock().is_closed = true;
    }

    pub(crate) fn set_rank(&self, rank: ToolRank) {
        let mut registered = self.registered.lock();
        if registered.rank != rank && !registered.is_closed {
            registered.rank = rank;
            self.publish(&registered);
            self.publish_content(&registered);
        }
    }

    fn publish(&self, registered: &RegisteredTools) {
        let tools = registered.tools.iter().map(|tool| {
            let name = tool.definition().original_name();
            match registered.withheld.get(name) {
                Some(why) => Arc::new(WithheldTool(tool.definition().withhold(why.clone()))),
                None => Arc::clone(tool),
            }
        });
        self.manager
            .replace(&self.source, registered.rank, tools.collect());
    }

    fn publish_content(&self, registered: &RegisteredTools) {
        let (rank, content) = (registered.rank, registered.content.clone());
        self.manager.replace_content(&self.source, rank, content);
    }
}

impl RegisteredTools {
    fn offered_count(&self) -> usize {
        let is_withheld = |tool: &&Arc<dyn Tool>| {
            let name = tool.definition().original_name();
            self.withheld.contains_key(name)
        };
        self.tools.len() - self.tools.iter().filter(is_withheld).count()
    }
}

struct WithheldTool(ToolDefinition);

impl Tool for WithheldTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    // The executor never reaches this; it guards direct invocations.
    fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        let why = self.0.withheld().cloned();
        let error = why.unwrap_or_else(|| WithheldReason::new("is withheld", ""));
        Box::pin(async move { Err(error.error(context.tool_name())) })
    }
}
