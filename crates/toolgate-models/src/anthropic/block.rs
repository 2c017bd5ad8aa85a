//! The blocks of an answer, and what becomes of them.

use serde_json::{Map, Value};

use super::wire::read;
use crate::wire_format::StreamError;
use crate::{CallArguments, Catalog, ModelCall, Part, Provider};

pub(super) struct Block {
    pub(super) index: u64,
    pub(super) content: Content,
    pub(super) closed: bool,
}

pub(super) enum Content {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        input: String,
    },
    /// What this program does not know and only gives back, with the input it may have.
    Other {
        block: Map<String, Value>,
        input: String,
    },
}

impl Block {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.content, Content::Call { .. })
    }

    /// Nothing at all means no arguments, unless the block was cut.
    pub(super) fn is_half_a_call(&self) -> bool {
        let Content::Call { input, .. } = &self.content else {
            return false;
        };
        let arguments = CallArguments::read(input);
        input.trim().is_empty() || matches!(arguments, CallArguments::Unusable(_))
    }
}

impl Content {
    pub(super) fn part(self, catalog: &Catalog) -> Result<Option<Part>, StreamError> {
        Ok(Some(match self {
            Self::Text(text) if text.is_empty() => return Ok(None),
            Self::Text(text) => Part::Text { text },
            Self::Thinking { text, signature } => Part::Thinking {
                text,
                signature: Some(signature).filter(|signature| !signature.is_empty()),
            },
            Self::Call { id, name, input } => Part::Call(ModelCall {
                id: ModelCall::id_or_new(id),
                name: catalog.listed_name(&name),
                arguments: CallArguments::read(&input),
            }),
            Self::Other { mut block, input } => {
                if !input.is_empty() {
                    block.insert("input".to_owned(), read(&input)?);
                }
                Part::Opaque {
                    provider: Provider::Anthropic,
                    value: Value::Object(block),
                }
            }
        }))
    }
}
