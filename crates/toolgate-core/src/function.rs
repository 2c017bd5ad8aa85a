//! [`FunctionTool`]: a tool made from a definition and a function.

use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    CallContext, DefinitionBuilder, DefinitionError, Handler, Tool, ToolDefinition, ToolError,
    ToolFuture, ToolOutput, ValidArguments,
};

/// A tool made from an async function. Its schema is derived from the argument type
/// ([`new`](Self::new)) or part of a definition ([`with_definition`](Self::with_definition)). A
/// [`Handler`] can take the place of the function ([`with_handler`](Self::with_handler)).
pub struct FunctionTool {
    definition: ToolDefinition,
    handler: Arc<dyn Handler>,
}

/// What the function of a [`FunctionTool`] may return: a [`ToolOutput`], or any serializable value.
pub trait FunctionResult {
    /// Fails if the value can't be serialized as JSON.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

// No overlap: `ToolOutput` must not implement `Serialize`.
impl<R: Serialize> FunctionResult for R {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let value: Value = serde_json::to_value(self).map_err(|error| {
            ToolError::failed_because("The result can't be written as JSON", error)
        })?;
        Ok(ToolOutput::json(value))
    }
}

impl FunctionResult for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl FunctionTool {
    /// Creates a tool whose schema is derived from `T`. Fails if the name or the description is
    /// missing, or if the schema can't be enforced.
    pub fn new<T, F, Fut, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
        F: Fn(T, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: FunctionResult,
        E: Into<ToolError>,
    {
        Self::with_definition(ToolDefinition::for_type::<T>(name, description), run)
    }

    /// Like [`new`](Self::new), with a definition that can set more, such as a timeout, annotations
    /// or a hand-written schema.
    pub fn with_definition<T, F, Fut, R, E>(
        definition: DefinitionBuilder,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + 'static,
        F: Fn(T, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: FunctionResult,
        E: Into<ToolError>,
    {
        let handler =
            FunctionHandler::new(move |arguments: ValidArguments, context: &CallContext| {
                match arguments.parse() {
                    Ok(typed) => {
                        let work = run(typed, context.clone());
                        Box::pin(async move { work.await.map_err(Into::into)?.into_output() })
                    }
                    Err(error) => Box::pin(ready(Err(error))) as BoxFuture<'static, _>,
                }
            });
        Ok(Self::with_handler(definition.build()?, Arc::new(handler)))
    }

    /// Creates a tool from a handler, which several tools can share.
    pub fn with_handler(definition: ToolDefinition, handler: Arc<dyn Handler>) -> Self {
        Self {
            definition,
            handler,
        }
    }

    /// Creates a tool that answers every call with `answer`.
    pub fn mock(definition: ToolDefinition, answer: Value) -> Self {
        let answer = move |_: ValidArguments, _: &CallContext| {
            Box::pin(ready(Ok(ToolOutput::json(answer.clone())))) as BoxFuture<'static, _>
        };
        Self::with_handler(definition, Arc::new(FunctionHandler::new(answer)))
    }

    /// Creates a tool from a blocking function. Each call runs on a thread of its own.
    ///
    /// On timeout the caller gets its outcome, but the thread can't be stopped from outside: a
    /// function that runs for long must check [`CallContext::cancellation`]. Calls that never
    /// return can occupy at most eight threads; further calls fail as `overloaded`.
    pub fn blocking<T, F, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> Result<R, E> + Send + Sync + 'static,
        R: FunctionResult + Send + 'static,
        E: Into<ToolError> + Send + 'static,
    {
        const THREADS: usize = 8;
        let run = Arc::new(run);
        let semaphore = Arc::new(Semaphore::new(THREADS));
        Self::with_definition(
            ToolDefinition::for_type::<T>(name, description),
            move |arguments, context: CallContext| {
                let run = Arc::clone(&run);
                let semaphore = Arc::clone(&semaphore);
                async move {
                    let overloaded = |_| ToolError::Overloaded {
                        tool: context.tool_name().to_owned(),
                        limit: THREADS,
                    };
                    // The thread itself holds the permit: it may outlive the call.
                    let permit = semaphore.try_acquire_owned().map_err(overloaded)?;
                    let work = tokio::task::spawn_blocking(move || {
                        let result = run(arguments, context).map_err(Into::into);
                        drop(permit);
                        result
                    });
                    match work.await {
                        Ok(result) => result,
                        Err(failed) => match failed.try_into_panic() {
                            // Resumed, so that the executor reports it as a panic of the tool.
                            Ok(panic) => std::panic::resume_unwind(panic),
                            Err(_) => Err(ToolError::failed("The program is shutting down")),
                        },
                    }
                }
            },
        )
    }
}

impl Tool for FunctionTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        self.handler.call(arguments, context)
    }
}

struct FunctionHandler<F>(F);

impl<F> FunctionHandler<F>
where
    F: Fn(ValidArguments, &CallContext) -> ToolFuture<'static> + Send + Sync,
{
    // `new` exists for its bound: without it, the closure would be inferred for one specific
    // context lifetime.
    fn new(run: F) -> Self {
        Self(run)
    }
}

impl<F> Handler for FunctionHandler<F>
where
    F: Fn(ValidArguments, &CallContext) -> ToolFuture<'static> + Send + Sync,
{
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.0)(arguments, context)
    }
}

impl ToolDefinition {
    /// Starts a definition whose schema is derived from a type.
    pub fn for_type<T: JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> DefinitionBuilder {
        // Small models understand inlined schemas better than references into `$defs`.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        schema.remove("title");
        Self::builder(name, description, schema.into())
    }
}
