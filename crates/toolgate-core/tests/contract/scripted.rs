//! A tool whose behavior is a closure. Tests of other crates include this file as well.

use std::future::Future;

use futures::future::BoxFuture;
use toolgate_core::{
    CallContext, DefinitionBuilder, Tool, ToolDefinition, ToolError, ToolFuture, ToolOutput,
    ValidArguments,
};

pub(crate) type Answer = Result<ToolOutput, ToolError>;
type Run = dyn Fn(ValidArguments, CallContext) -> BoxFuture<'static, Answer> + Send + Sync;

/// A tool whose behavior is a closure.
pub(crate) struct ScriptedTool {
    definition: ToolDefinition,
    run: Box<Run>,
}

impl Tool for ScriptedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }
    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.run)(arguments, context.clone())
    }
}

pub(crate) fn scripted<F: Future<Output = Answer> + Send + 'static>(
    definition: DefinitionBuilder,
    run: impl Fn(ValidArguments, CallContext) -> F + Send + Sync + 'static,
) -> ScriptedTool {
    ScriptedTool {
        definition: definition.build().unwrap(),
        run: Box::new(move |arguments, context| Box::pin(run(arguments, context))),
    }
}

pub(crate) fn echo(definition: DefinitionBuilder) -> ScriptedTool {
    scripted(definition, |arguments, _| async move {
        Ok(ToolOutput::json(arguments.as_value().clone()))
    })
}

/// Always returns the same answer.
pub(crate) fn answering(definition: DefinitionBuilder, answer: Answer) -> ScriptedTool {
    scripted(definition, move |_, _| std::future::ready(answer.clone()))
}

pub(crate) fn hung(definition: DefinitionBuilder) -> ScriptedTool {
    scripted(definition, |_, _| std::future::pending())
}
