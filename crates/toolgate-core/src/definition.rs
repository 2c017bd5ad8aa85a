//! Everything there is to know of a tool before it is called.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::text::cut;
use crate::{
    Annotations, Limits, ParameterNames, Schema, SchemaError, SchemaLimits, Source, Withheld,
    tool_name,
};

/// A tool's name, description, schema and habits. If one exists, it is sound: [`DefinitionBuilder::build`] refuses the rest.
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
/// use toolgate_core::{Annotations, Limits, ToolDefinition};
///
/// let definition = ToolDefinition::builder("weather", "Weather for a city", json!({ "type": "object" }))
///     .annotations(Annotations::READ_ONLY)
///     .timeout(Duration::from_secs(5))
///     .build()?;
/// assert_eq!(definition.timeout(&Limits::default()), Duration::from_secs(5));
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    name: String,
    original_name: Option<String>,
    source: Source,
    title: Option<String>,
    description: String,
    schema: Schema,
    output_schema: Option<Arc<Value>>,
    annotations: Annotations,
    names: ParameterNames,
    timeout: Option<Duration>,
    withheld: Option<Arc<Withheld>>,
}

/// Why a definition was refused.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::ToolDefinition;
///
/// let error = ToolDefinition::builder("weather", "", json!({ "type": "object" })).build().unwrap_err();
/// assert_eq!(error.to_string(), "tool 'weather' has no description");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// An empty name, or a local one with characters that can't be seen.
    #[error("tool name '{name}' {problem}")]
    Name {
        /// The name, escaped.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No description: a model would not know when to use the tool.
    #[error("tool '{name}' has no description")]
    NoDescription {
        /// The tool's name, cut if it is long.
        name: String,
    },
    /// No usable schema.
    #[error("parameters of tool '{name}': {error}")]
    Schema {
        /// The tool's name, cut if it is long.
        name: String,
        /// What is wrong with the schema.
        #[source]
        error: SchemaError,
    },
}

impl DefinitionError {
    /// True if nothing is wrong with the tool, but its schema can not be run here. It can be kept by leaving the checking of
    /// arguments to the tool itself: [`DefinitionBuilder::validate`].
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
            source: Source::Custom,
            title: None,
            description: description.into(),
            parameters,
            validate: true,
            deferred: false,
            output_schema: None,
            annotations: Annotations::default(),
            names: ParameterNames::default(),
            timeout: None,
            limits: SchemaLimits::default(),
        }
    }

    /// The name it is listed under. It may hold anything a person can see; see [`original_name`](Self::original_name).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name on its own server, exactly as the server listed it. Not fit for a screen or a log.
    pub fn original_name(&self) -> &str {
        self.original_name.as_deref().unwrap_or(&self.name)
    }

    /// Where it comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// A name for people, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What it does, for a model and for a person.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of its arguments, exactly as it was given.
    pub fn parameters(&self) -> &Value {
        self.schema.document()
    }

    /// The compiled schema of its arguments.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The schema of its structured answer, if it declares one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_deref()
    }

    /// What it says of its effects.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// How its parameters are renamed before validation; local tools are left alone.
    pub fn names(&self) -> &ParameterNames {
        &self.names
    }

    /// The limit for a call of this tool: configured by name, else its own, else the general one.
    pub fn timeout(&self, limits: &Limits) -> Duration {
        let configured = limits
            .per_tool
            .get(&self.name)
            .and_then(|tool| tool.timeout);
        configured.or(self.timeout).unwrap_or(limits.timeout)
    }

    /// Why nobody may use it for now; none for nearly every tool.
    pub fn withheld(&self) -> Option<&Withheld> {
        self.withheld.as_deref()
    }

    /// The same tool, which keeps its name but is neither offered nor called.
    #[must_use]
    pub fn withhold(&self, why: Withheld) -> Self {
        Self {
            withheld: Some(Arc::new(why)),
            ..self.clone()
        }
    }

    /// The same tool under another name; what it is called on its server stays.
    pub(crate) fn listed_as(&self, name: String) -> Self {
        Self {
            original_name: Some(self.original_name().to_owned()),
            name,
            ..self.clone()
        }
    }
}

/// A tool for programs, as `list --json` and the HTTP API show it.
impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("name", &self.name)?;
        tool.serialize_entry("source", &self.source.to_string())?;
        if let Source::Mcp(server) = &self.source {
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

/// Collects what a [`ToolDefinition`] needs.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Source, ToolDefinition};
///
/// let builder = ToolDefinition::builder("read", "Reads a note", json!({ "type": "object" })).source(Source::Internal);
/// assert_eq!(builder.build()?.source(), &Source::Internal);
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct DefinitionBuilder {
    name: String,
    original_name: Option<String>,
    source: Source,
    title: Option<String>,
    description: String,
    parameters: Value,
    validate: bool,
    deferred: bool,
    output_schema: Option<Value>,
    annotations: Annotations,
    names: ParameterNames,
    timeout: Option<Duration>,
    limits: SchemaLimits,
}

impl DefinitionBuilder {
    /// Where the tool comes from; [`Source::Custom`] unless told.
    pub fn source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// The name on its own server.
    pub fn original_name(mut self, name: impl Into<String>) -> Self {
        self.original_name = Some(name.into());
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// False leaves the checking of arguments to the tool: its schema is then shown, but neither compiled nor enforced.
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// Leaves compiling the schema to the first call, see [`Schema::deferred`]: for definitions that were built before.
    pub fn deferred(mut self) -> Self {
        self.deferred = true;
        self
    }

    /// The schema of the structured answer.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// What the tool says of its effects.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// How parameters are renamed. Those of local tools never are, whatever is said here.
    pub fn names(mut self, names: ParameterNames) -> Self {
        self.names = names;
        self
    }

    /// The tool's own limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Other bounds for the schema than the usual ones.
    pub fn schema_limits(mut self, limits: SchemaLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks everything and compiles the schema.
    pub fn build(self) -> Result<ToolDefinition, DefinitionError> {
        let listed = tool_name::shown(&self.name).into_owned();
        let is_local = self.source.is_local();
        if let Some(problem) = tool_name::problem(&self.name, is_local) {
            return Err(DefinitionError::Name {
                name: cut(&self.name, 200),
                problem,
            });
        }
        if self.description.trim().is_empty() {
            let name = cut(&listed, 200);
            return Err(DefinitionError::NoDescription { name });
        }
        let schema = match (self.validate, self.deferred) {
            (false, _) => Schema::unchecked(self.parameters, &self.limits),
            (true, false) => Schema::compile(self.parameters, &self.limits),
            (true, true) => Schema::deferred(self.parameters, &self.limits),
        };
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => {
                let name = cut(&listed, 200);
                return Err(DefinitionError::Schema { name, error });
            }
        };
        let names = if is_local {
            ParameterNames::default()
        } else {
            self.names.declared_by(schema.document(), &self.limits)
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
            timeout: self.timeout,
            withheld: None,
        })
    }
}
