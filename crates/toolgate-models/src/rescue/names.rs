//! Which tool is meant by a name in a text.

use serde_json::Value;
use toolgate_core::{Arguments, ToolDefinition, ToolError, typed_arguments};

use crate::{CallArguments, CatalogTool, ModelCall, Offer};

#[derive(Clone, Copy)]
pub(super) struct Meant<'a>(&'a CatalogTool);

/// The tool that the catalog finds by a name, else the one that its server calls so, in large or small letters. A name
/// that fits several tools means none, and so does one of a tool that was not offered.
pub(super) fn find<'a>(offer: &'a Offer, name: &str) -> Option<Meant<'a>> {
    if let Some(meant) = offer.catalog().meant(name) {
        return only(offer, |tool| std::ptr::eq(tool, meant));
    }
    let by = |same: fn(&str, &str) -> bool| {
        only(offer, |tool| {
            same(tool.tool.definition().original_name(), name)
        })
    };
    by(|left, right| left == right).or_else(|| by(str::eq_ignore_ascii_case))
}

fn only(offer: &Offer, fits: impl Fn(&CatalogTool) -> bool) -> Option<Meant<'_>> {
    let mut tools = offer.iter().filter(|tool| fits(tool));
    let first = tools.next()?;
    tools.next().is_none().then_some(Meant(first))
}

impl<'a> Meant<'a> {
    pub(super) fn definition(self) -> &'a ToolDefinition {
        self.0.tool.definition()
    }

    pub(super) fn call_in_json(self, arguments: CallArguments) -> ModelCall {
        self.call(match arguments {
            CallArguments::Object(object) => CallArguments::Object(self.typed(object)),
            unusable => unusable,
        })
    }

    /// A model that writes its calls by hand puts quotes around anything. A string stays one where the schema takes it; else it
    /// becomes what the schema says, as text between tags does, or stays for validation to refuse.
    fn typed(self, mut arguments: Arguments) -> Arguments {
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

    pub(super) fn call(self, arguments: CallArguments) -> ModelCall {
        ModelCall {
            id: ModelCall::new_id(),
            name: self.definition().name().to_owned(),
            arguments,
        }
    }
}
