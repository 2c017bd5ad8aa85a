//! Language packs: sentences, their meanings and the texts of answers, as data.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_home::{HomeTool, PROTOCOLS};

use super::answer::AnswerTemplate;
use super::dates::DateWords;
use super::engine::SentenceEngine;
use super::maths::MathWords;
use super::numbers::NumberWords;
use super::template::SentenceTemplate;

// In bytes. The built-in pack has 65 KB; a file larger than this is not a pack.
const MAX_PACK_BYTES: usize = 1024 * 1024;

/// A language pack: sentences, their meanings, and the texts of answers.
///
/// It is parsed from JSON in the format that `docs/intents.md` describes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pack {
    pub(crate) language: String,
    pub(crate) fillers: Vec<String>,
    /// Fillers that may also come after free text.
    pub(crate) polite: Vec<String>,
    pub(crate) small: Vec<String>,
    pub(crate) replace: HashMap<String, String>,
    pub(crate) numbers: NumberWords,
    pub(crate) maths: MathWords,
    pub(crate) dates: DateWords,
    pub(crate) replies: ReplyWords,
    /// Words for the last subject: `it`.
    pub(crate) pronouns: Vec<String>,
    pub(crate) groups: GroupWords,
    pub(crate) texts: HashMap<String, String>,
    pub(crate) slots: HashMap<String, SlotKind>,
    /// The noun for the values of a slot, such as `place`. Without one, unknown
    /// values are not reported.
    pub(crate) nouns: HashMap<String, String>,
    pub(crate) intents: Vec<Intent>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GroupWords {
    /// Said before words that several names share: `all the`.
    pub(crate) all: Vec<String>,
    pub(crate) everything: Vec<String>,
    /// Between two names and between two requests.
    pub(crate) and: Vec<String>,
    pub(crate) then: Vec<String>,
    pub(crate) plural: Vec<String>,
    /// Kinds of things, such as `light`. Their names need not contain the word.
    pub(crate) kinds: Vec<ItemKind>,
}

impl GroupWords {
    pub(crate) fn merge(&mut self, more: Self) {
        extend_all!(self, more: all, everything, and, then, plural, kinds);
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemKind {
    /// Words for the kind. An item whose name contains one is of this kind.
    pub(crate) words: Vec<String>,
    pub(crate) pointer: String,
    pub(crate) is: Vec<String>,
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReplyWords {
    pub(crate) yes: Vec<String>,
    pub(crate) no: Vec<String>,
    pub(crate) all: Vec<String>,
    /// Counted from 1; `last` is 0.
    pub(crate) ordinals: HashMap<String, usize>,
    pub(crate) small: Vec<String>,
}

impl ReplyWords {
    pub(crate) fn merge(&mut self, more: Self) {
        extend_all!(self, more: yes, no, all, ordinals, small);
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SlotKind {
    Number,
    Range(NumberRange),
    Expression,
    Date,
    Text,
    Values(SlotValues),
    List(Box<ListSource>),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NumberRange {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) noun: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum SlotValues {
    Plain(Vec<String>),
    /// A value without spoken forms is spoken as it is.
    Spoken(BTreeMap<String, Vec<String>>),
}

/// A tool whose result contains names. Only read-only tools are called.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSource {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// JSON pointer to the names; `*` matches every item of a list.
    pub(crate) pointer: String,
    #[serde(default)]
    pub(crate) qualifier: Option<String>,
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// Also includes items with these values at these pointers, whatever their names.
    /// An array lists alternatives.
    #[serde(default)]
    pub(crate) or: Map<String, Value>,
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// The items that `everything` includes; all by default.
    #[serde(default)]
    pub(crate) everything: Option<EverythingRule>,
    pub(crate) noun: String,
    pub(crate) nouns: String,
}

// Limits what `everything` includes: a lock is a device, but `turn everything off` doesn't mean it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EverythingRule {
    pub(crate) pointer: String,
    /// The accepted types. An item without a type is accepted.
    pub(crate) is: Vec<String>,
    /// Excludes names with one of these words, unless they also name a kind: a `front door
    /// light` is a light.
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Intent {
    pub(crate) sentences: Vec<SentenceTemplate>,
    pub(crate) example: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    /// True if only exact names are accepted.
    pub(crate) exact: bool,
    pub(crate) answer: AnswerTemplate,
    pub(crate) does: Option<String>,
    /// A list slot that no sentence contains. Any entry of its list may be meant. If there are
    /// several, the person is asked which one.
    pub(crate) any: Option<String>,
    /// True if only existing names fit; with any other name the sentence means something else.
    pub(crate) known: bool,
    pub(crate) say: Option<String>,
    /// Asks for what is missing. The reply is joined to the sentence. With `tool`, it is asked only
    /// if that tool is available.
    pub(crate) ask: Option<String>,
    pub(crate) help: bool,
    /// The number of packs below the intent's own pack. Higher layers win.
    #[serde(skip)]
    pub(crate) layer: usize,
}

/// The error for a pack that can't be parsed or is inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if *line == 0 { String::new() } else { format!("line {line}, column {column}: ") })]
#[non_exhaustive]
pub struct PackError {
    /// Line and column are counted from 1; both are 0 if the error has no single position.
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

impl PackError {
    pub(crate) fn without_position(reason: String) -> Self {
        Self {
            line: 0,
            column: 0,
            reason,
        }
    }
}

impl Pack {
    /// The built-in English pack.
    pub fn english() -> Self {
        // A test parses the built-in pack, so this can't fail in a released build.
        Self::parse(include_str!("en.json")).unwrap_or_default()
    }

    /// Parses a pack of at most 1 MiB. Syntax errors carry their line and column.
    pub fn parse(json: &str) -> Result<Self, PackError> {
        if json.len() > MAX_PACK_BYTES {
            let reason = format!(
                "a language pack may have at most {MAX_PACK_BYTES} bytes, and this one has {}",
                json.len()
            );
            return Err(PackError::without_position(reason));
        }
        let pack = serde_json::from_str(json.trim_start_matches('\u{feff}'));
        pack.map(Self::with_home_tools).map_err(|error| {
            let text = error.to_string();
            let reason = text
                .rsplit_once(" at line ")
                .map_or(&*text, |(reason, _)| reason);
            PackError {
                line: error.line(),
                column: error.column(),
                reason: toolgate_core::text::escape(reason),
            }
        })
    }

    /// Replaces role names such as `home.control_device` with tool names of the first protocol, by
    /// which the tools of all protocols are found.
    fn with_home_tools(mut self) -> Self {
        let intents = self.intents.iter_mut();
        let intents = intents.filter_map(|intent| intent.tool.as_mut());
        let lists = self.slots.values_mut().filter_map(|slot| match slot {
            SlotKind::List(source) => Some(&mut source.tool),
            _ => None,
        });
        for tool in intents.chain(lists) {
            if let Some(role) = HomeTool::from_role(tool) {
                *tool = role.name(PROTOCOLS[0]);
            }
        }
        self
    }

    /// Adds another pack on top. If both match a sentence equally well, the added one wins. Its
    /// texts and slots replace those of the same name.
    #[must_use]
    pub fn with(mut self, more: Self) -> Self {
        if !more.language.is_empty() {
            self.language = more.language;
        }
        extend_all!(self, more: fillers, polite, small, replace, pronouns, texts, slots, nouns);
        self.numbers.merge(more.numbers);
        self.maths.merge(more.maths);
        self.dates.merge(more.dates);
        self.replies.merge(more.replies);
        self.groups.merge(more.groups);
        let layers = self.intents.iter().map(|intent| intent.layer + 1);
        let top = layers.max().unwrap_or(0);
        let added = more.intents.into_iter().map(|intent| Intent {
            layer: intent.layer + top,
            ..intent
        });
        self.intents.extend(added);
        self
    }

    /// Checks that the parts of the pack fit together, as [`SentenceInterpreter::new`] does.
    ///
    /// [`SentenceInterpreter::new`]: crate::SentenceInterpreter::new
    pub fn check(&self) -> Result<(), PackError> {
        SentenceEngine::new(self.clone()).map(drop)
    }
}

#[cfg(test)]
mod tests;
