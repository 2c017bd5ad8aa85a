//! [`ToolDefinition`]: describes a tool to callers and models.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::text::escape_truncated;
use crate::{
    Annotations, Limits, ParameterNames, Schema, SchemaError, SchemaLimits, ToolSource,
    WithheldReason, tool_name,
};

/// A tool's name, description, schema and annotations. A definition is always valid:
/// [`DefinitionBuilder::build`] rejects everything else.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    name: String,
    original_name: Option<String>,
    source: ToolSource,
    title: Option<String>,
    description: String,
    schema: Schema,
    output_schema: Option<Arc<Value>>,
    annotations: Annotations,
    extra: Option<Arc<Map<String, Value>>>,
    names: ParameterNames,
    timeout: Option<Duration>,
    withheld: Option<Arc<WithheldReason>>,
}

/// Why a tool can't be defined.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    #[error("tool name '{name}' {problem}")]
    Name {
        name: String,
        /// Completes the sentence that begins with the name.
        problem: &'static str,
    },
    /// The description is missing, so a model would not know when to use the tool.
    #[error("tool '{name}' has no description")]
    NoDescription { name: String },
    #[error("parameters of tool '{name}': {error}")]
    Schema {
        name: String,
        #[source]
        error: SchemaError,
    },
}

impl DefinitionError {
    /// True if the schema is valid but can't be enforced here. The tool can still be used if it
    /// validates its own arguments: see [`DefinitionBuilder::validate`].
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Schema {
                error: SchemaError::Keyword { .. },
                ..
            }
        )
    }
}

impl ToolDefinition {
    /// Starts a definition; `parameters` is a JSON Schema of type `object`.
    pub fn builder(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
    ) -> DefinitionBuilder {
        DefinitionBuilder {
            name: name.into(),
            original_name: None,
            source: ToolSource::Custom,
            title: None,
            description: description.into(),
            parameters,
            validate: true,
            deferred: false,
            output_schema: None,
            annotations: Annotations::default(),
            extra: None,
            names: ParameterNames::default(),
            timeout: None,
        }
    }

    /// The name that the tool is listed and called under. Control and invisible characters
    /// are escaped; see [`original_name`](Self::original_name).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tool's name on its server, exactly as the server sent it. Never print or log it: it
    /// may contain control characters.
    pub fn original_name(&self) -> &str {
        self.original_name.as_deref().unwrap_or(&self.name)
    }

    pub fn source(&self) -> &ToolSource {
        &self.source
    }

    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of the arguments, exactly as its author wrote it.
    pub fn parameters(&self) -> &Value {
        self.schema.document()
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_deref()
    }

    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// Members of the definition that only its callers understand, such as `icons` and `_meta` of
    /// an MCP tool. They are passed on as they are.
    pub fn extra(&self) -> Option<&Map<String, Value>> {
        self.extra.as_deref()
    }

    /// False for a tool that only the page of an MCP App may call, so that models don't get it.
    pub fn is_for_models(&self) -> bool {
        let meta = self.extra().and_then(|extra| extra.get("_meta"));
        let visibility = meta.and_then(|meta| meta["ui"]["visibility"].as_array());
        visibility.is_none_or(|visible_to| visible_to.iter().any(|it| it == "model"))
    }

    /// How parameters are renamed before validation. Those of local tools never are.
    pub fn parameter_names(&self) -> &ParameterNames {
        &self.names
    }

    /// The time limit for a call: the configured limit for this name, else the tool's own,
    /// else the general limit.
    pub fn timeout(&self, limits: &Limits) -> Duration {
        let configured = limits
            .per_tool
            .get(&self.name)
            .and_then(|tool| tool.timeout);
        configured.or(self.timeout).unwrap_or(limits.timeout)
    }

    /// Why nobody may use the tool until a person agrees to it; `None` if it can be used.
    pub fn withheld(&self) -> Option<&WithheldReason> {
        self.withheld.as_deref()
    }

    /// Returns a copy that keeps its name but is neither offered nor called.
    #[must_use]
    pub fn withhold(&self, why: WithheldReason) -> Self {
        Self {
            withheld: Some(Arc::new(why)),
            ..self.clone()
        }
    }

    /// Returns the definition under another name; the original name stays.
    pub(crate) fn with_name(&self, name: String) -> Self {
        Self {
            original_name: Some(self.original_name().to_owned()),
            name,
            ..self.clone()
        }
    }
}

/// The form that `list --json` and the HTTP API return.
impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("name", &self.name)?;
        tool.serialize_entry("source", &self.source.to_string())?;
        if let ToolSource::Mcp(server) = &self.source {
            tool.serialize_entry("server", server)?;
        }
        if let Some(title) = &self.title {
            tool.serialize_entry("title", title)?;
        }
        tool.serialize_entry("description", &self.description)?;
        tool.serialize_entry("parameters", self.parameters())?;
        if let Some(schema) = &self.output_schema {
            tool.serialize_entry("output_schema", schema)?;
        }
        tool.serialize_entry("annotations", &self.annotations)?;
        if let Some(withheld) = &self.withheld {
            tool.serialize_entry("withheld", &withheld.reason)?;
        }
        tool.end()
    }
}

/// Builds a [`ToolDefinition`]. Start with [`ToolDefinition::builder`] or
/// [`ToolDefinition::for_type`].
#[derive(Debug, Clone)]
#[must_use]
pub struct DefinitionBuilder {
    name: String,
    original_name: Option<String>,
    source: ToolSource,
    title: Option<String>,
    description: String,
    parameters: Value,
    validate: bool,
    deferred: bool,
    output_schema: Option<Value>,
    annotations: Annotations,
    extra: Option<Arc<Map<String, Value>>>,
    names: ParameterNames,
    timeout: Option<Duration>,
}

impl DefinitionBuilder {
    /// Sets where the tool comes from; [`ToolSource::Custom`] by default.
    pub fn source(mut self, source: ToolSource) -> Self {
        self.source = source;
        self
    }

    /// Sets the tool's name on its server, if it differs from the one it is listed under.
    pub fn original_name(mut self, name: impl Into<String>) -> Self {
        self.original_name = Some(name.into());
        self
    }

    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// With `false` the tool validates its own arguments: the schema is shown, but
    /// neither compiled nor enforced.
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// Compiles the schema only at the first call; see [`Schema::deferred`]. Use it for definitions
    /// whose schema has compiled before.
    pub fn deferred(mut self) -> Self {
        self.deferred = true;
        self
    }

    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Members to pass on to callers as they are; see [`ToolDefinition::extra`].
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = (!extra.is_empty()).then(|| Arc::new(extra));
        self
    }

    /// How parameters are renamed. Ignored for local tools.
    pub fn parameter_names(mut self, names: ParameterNames) -> Self {
        self.names = names;
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Checks the name and the description, and compiles the schema.
    pub fn build(self) -> Result<ToolDefinition, DefinitionError> {
        let listed = tool_name::display_name(&self.name).into_owned();
        let is_local = self.source.is_local();
        if let Some(problem) = tool_name::name_problem(&self.name, is_local) {
            return Err(DefinitionError::Name {
                name: escape_truncated(&self.name, 200),
                problem,
            });
        }
        if self.description.trim().is_empty() {
            let name = escape_truncated(&listed, 200);
            return Err(DefinitionError::NoDescription { name });
        }
        let limits = SchemaLimits::default();
        let schema = match (self.validate, self.deferred) {
            (false, _) => Schema::unchecked(self.parameters, &limits),
            (true, false) => Schema::compile(self.parameters, &limits),
            (true, true) => Schema::deferred(self.parameters, &limits),
        };
        let schema = schema.map_err(|error| DefinitionError::Schema {
            name: escape_truncated(&listed, 200),
            error,
        })?;
        let names = if is_local {
            ParameterNames::default()
        } else {
            self.names.with_declared_names(schema.document(), &limits)
        };
        if !self.deferred {
            names.compile_patterns();
        }
        let original_name = match self.original_name {
            None if listed != self.name => Some(self.name),
            given => given,
        };
        Ok(ToolDefinition {
            names,
            name: listed,
            original_name,
            source: self.source,
            title: self.title,
            description: self.description,
            schema,
            output_schema: self.output_schema.map(Arc::new),
            annotations: self.annotations,
            extra: self.extra,
            timeout: self.timeout,
            withheld: None,
        })
    }
}
