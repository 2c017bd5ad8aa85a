//! A tool whose behaviour is a closure. The tests of other crates use this file as well.

use std::future::Future;

use futures::future::BoxFuture;
use toolgate_core::{
    CallContext, DefinitionBuilder, Tool, ToolDefinition, ToolError, ToolFuture, ToolOutput,
    ValidArguments,
};

pub(crate) type Answer = Result<ToolOutput, ToolError>;
type Run = dyn Fn(ValidArguments, CallContext) -> BoxFuture<'static, Answer> + Send + Sync;

/// A tool whose behaviour is a closure.
pub(crate) struct Scripted {
    definition: ToolDefinition,
    run: Box<Run>,
}

impl Tool for Scripted {
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
) -> Scripted {
    Scripted {
        definition: definition.build().unwrap(),
        run: Box::new(move |arguments, context| Box::pin(run(arguments, context))),
    }
}

/// Answers with its arguments.
pub(crate) fn echo(definition: DefinitionBuilder) -> Scripted {
    scripted(definition, |arguments, _| async move {
        Ok(ToolOutput::json(arguments.as_value().clone()))
    })
}

/// Always answers the same.
pub(crate) fn answering(definition: DefinitionBuilder, answer: Answer) -> Scripted {
    scripted(definition, move |_, _| std::future::ready(answer.clone()))
}

/// Never answers.
pub(crate) fn hung(definition: DefinitionBuilder) -> Scripted {
    scripted(definition, |_, _| std::future::pending())
}
