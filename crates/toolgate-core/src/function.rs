//! A definition and what stands behind it: the one way to make a tool without a type of its own.

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

/// A tool whose argument type says its schema and whose function does the work. The schema may
/// also be written by hand ([`defined`](Self::defined)), and a [`Handler`] may stand in for the
/// function ([`with_handler`](Self::with_handler)).
///
/// ```
/// use toolgate_core::{FunctionTool, ToolError};
///
/// /// The doc comments become the descriptions a model reads.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// }
///
/// let add = FunctionTool::new("add", "Adds two numbers", |add: Add, _context| async move {
///     add.a.checked_add(add.b).ok_or_else(|| ToolError::failed("The sum is too large"))
/// })?;
/// # use toolgate_core::Tool;
/// # assert_eq!(add.definition().parameters()["properties"]["a"]["description"], "The first number.");
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
pub struct FunctionTool {
    definition: ToolDefinition,
    handler: Arc<dyn Handler>,
}

/// What a function may return: a [`ToolOutput`], or anything else that can be written as JSON.
pub trait FunctionResult {
    /// Fails if it cannot be written as JSON.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl<R: Serialize> FunctionResult for R {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let value: Value = serde_json::to_value(self).map_err(|error| {
            ToolError::failed_because("The result can not be written as JSON", error)
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
    /// From an async function. What it returns is the result.
    pub fn new<T, F, W, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
        F: Fn(T, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
        R: FunctionResult,
        E: Into<ToolError>,
    {
        Self::defined(ToolDefinition::for_type::<T>(name, description), run)
    }

    /// The same with a definition that says more, for example a timeout, annotations or a schema
    /// written by hand.
    pub fn defined<T, F, W, R, E>(
        definition: DefinitionBuilder,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + 'static,
        F: Fn(T, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
        R: FunctionResult,
        E: Into<ToolError>,
    {
        let handler =
            Function::new(
                move |arguments: ValidArguments, context: &CallContext| match arguments.parse() {
                    Ok(typed) => {
                        let work = run(typed, context.clone());
                        Box::pin(async move { work.await.map_err(Into::into)?.into_output() })
                    }
                    Err(error) => Box::pin(ready(Err(error))) as BoxFuture<'static, _>,
                },
            );
        Ok(Self::with_handler(definition.build()?, Arc::new(handler)))
    }

    /// From a handler that other definitions may share.
    pub fn with_handler(definition: ToolDefinition, handler: Arc<dyn Handler>) -> Self {
        Self {
            definition,
            handler,
        }
    }

    /// A tool that gives the same answer to every call.
    pub fn mock(definition: ToolDefinition, answer: Value) -> Self {
        let answer = move |_: ValidArguments, _: &CallContext| {
            Box::pin(ready(Ok(ToolOutput::json(answer.clone())))) as BoxFuture<'static, _>
        };
        Self::with_handler(definition, Arc::new(Function::new(answer)))
    }

    /// From a function that blocks its thread: it runs on a thread of its own.
    ///
    /// On timeout the caller gets its outcome, but no thread can be stopped from outside: a long function must look at
    /// [`CallContext::cancellation`]. A tool that never ends can hold at most eight threads; its next calls are `overloaded`.
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
        let threads = Arc::new(Semaphore::new(THREADS));
        Self::defined(
            ToolDefinition::for_type::<T>(name, description),
            move |arguments, context: CallContext| {
                let run = Arc::clone(&run);
                let threads = Arc::clone(&threads);
                async move {
                    let overloaded = |_| ToolError::Overloaded {
                        tool: context.tool_name().to_owned(),
                        limit: THREADS,
                    };
                    // The thread itself holds the permit: it may outlive the call.
                    let thread = threads.try_acquire_owned().map_err(overloaded)?;
                    let work = tokio::task::spawn_blocking(move || {
                        let result = run(arguments, context).map_err(Into::into);
                        drop(thread);
                        result
                    });
                    match work.await {
                        Ok(result) => result,
                        Err(failed) => match failed.try_into_panic() {
                            // Thrown on, so that the executor sees it as what it is.
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

struct Function<F>(F);

impl<F> Function<F>
where
    F: Fn(ValidArguments, &CallContext) -> ToolFuture<'static> + Send + Sync,
{
    /// Here the compiler learns that a closure takes a context of any lifetime.
    fn new(run: F) -> Self {
        Self(run)
    }
}

impl<F> Handler for Function<F>
where
    F: Fn(ValidArguments, &CallContext) -> ToolFuture<'static> + Send + Sync,
{
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.0)(arguments, context)
    }
}

impl ToolDefinition {
    /// Starts a definition whose schema is that of a type.
    pub fn for_type<T: JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> DefinitionBuilder {
        // Small models do better with everything in place than with `$defs`.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        schema.remove("title");
        Self::builder(name, description, schema.into())
    }
}
