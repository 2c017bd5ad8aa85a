//! A tool made of one Rust function.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    CallContext, DefinitionBuilder, DefinitionError, Tool, ToolDefinition, ToolError, ToolFuture,
    ToolOutput, ValidArguments,
};

/// A tool whose argument type says its schema and whose function does the work.
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
pub struct FunctionTool<T> {
    definition: ToolDefinition,
    run: Run<T>,
    arguments: PhantomData<fn(T)>,
}

type Run<T> =
    Box<dyn Fn(T, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

impl<T: DeserializeOwned + JsonSchema + 'static> FunctionTool<T> {
    /// From an async function. What it returns is serialized as the result.
    pub fn new<F, W, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(T, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize,
        E: Into<ToolError>,
    {
        Self::defined(ToolDefinition::for_type::<T>(name, description), run)
    }

    /// The same with a definition that says more, for example a timeout or annotations.
    pub fn defined<F, W, R, E>(
        definition: DefinitionBuilder,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(T, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize,
        E: Into<ToolError>,
    {
        let run = move |arguments, context| {
            let work = run(arguments, context);
            Box::pin(async move { to_output(work.await) }) as BoxFuture<'static, _>
        };
        Ok(Self {
            definition: definition.build()?,
            run: Box::new(run),
            arguments: PhantomData,
        })
    }

    /// From a function that blocks its thread: it runs on a thread of its own.
    ///
    /// On timeout the caller gets its outcome, but no thread can be stopped from outside: a long function must look at
    /// [`CallContext::cancellation`]. A tool that never ends can hold at most eight threads; its next calls are `overloaded`.
    pub fn blocking<F, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Self, DefinitionError>
    where
        F: Fn(T, CallContext) -> Result<R, E> + Send + Sync + 'static,
        T: Send,
        R: Serialize + Send + 'static,
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

impl<T: DeserializeOwned + 'static> Tool for FunctionTool<T> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        match arguments.parse() {
            Ok(typed) => (self.run)(typed, context.clone()),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
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

fn to_output<R: Serialize, E: Into<ToolError>>(
    result: Result<R, E>,
) -> Result<ToolOutput, ToolError> {
    let value: Value = serde_json::to_value(result.map_err(Into::into)?).map_err(|error| {
        ToolError::failed_because("The result can not be written as JSON", error)
    })?;
    Ok(ToolOutput::json(value))
}
