//! Resolves the tool names that models write in text.

use serde_json::Value;
use toolgate_core::{Arguments, ToolDefinition, ToolError, typed_arguments};

use crate::{CallArguments, CatalogTool, ModelCall, OfferedTools};

#[derive(Clone, Copy)]
pub(super) struct MatchedTool<'a>(&'a CatalogTool);

/// Finds an offered tool by a name that the catalog knows, or by its name on its own server,
/// ignoring case. A name that fits several tools matches none.
pub(super) fn find_tool<'a>(offer: &'a OfferedTools, name: &str) -> Option<MatchedTool<'a>> {
    if let Some(meant) = offer.catalog().resolve_name(name) {
        return find_unique(offer, |tool| std::ptr::eq(tool, meant));
    }
    let by = |same: fn(&str, &str) -> bool| {
        find_unique(offer, |tool| {
            same(tool.tool.definition().original_name(), name)
        })
    };
    by(|left, right| left == right).or_else(|| by(str::eq_ignore_ascii_case))
}

fn find_unique(
    offer: &OfferedTools,
    fits: impl Fn(&CatalogTool) -> bool,
) -> Option<MatchedTool<'_>> {
    let mut tools = offer.iter().filter(|tool| fits(tool));
    let first = tools.next()?;
    tools.next().is_none().then_some(MatchedTool(first))
}

impl<'a> MatchedTool<'a> {
    pub(super) fn definition(self) -> &'a ToolDefinition {
        self.0.tool.definition()
    }

    pub(super) fn to_typed_call(self, arguments: CallArguments) -> ModelCall {
        self.to_call(match arguments {
            CallArguments::Object(object) => CallArguments::Object(self.convert_strings(object)),
            unusable => unusable,
        })
    }

    // Models that write calls as text put quotes around anything. A string stays a string if the
    // schema accepts that. Otherwise it's converted to the schema's type, or left for validation to
    // refuse.
    fn convert_strings(self, mut arguments: Arguments) -> Arguments {
        let definition = self.definition();
        let checked = definition.schema().check(Value::Object(arguments.clone()));
        let Err(ToolError::InvalidArguments { violations, .. }) = checked else {
            return arguments;
        };
        for violation in violations {
            let name = violation.parameter();
            if let Some(Value::String(text)) = arguments.get(name)
                && let Ok(typed) = typed_arguments(&[(name, text)], definition.parameters())
            {
                arguments.extend(typed);
            }
        }
        arguments
    }

    pub(super) fn to_call(self, arguments: CallArguments) -> ModelCall {
        ModelCall {
            id: ModelCall::new_id(),
            name: self.definition().name().to_owned(),
            arguments,
        }
    }
}
