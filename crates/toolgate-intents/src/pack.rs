//! A language as data: its sentences, what they mean, and the words to answer with.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_home::{DIALECTS, HomeTool};

use super::answer::Answer;
use super::dates::Dates;
use super::engine::Engine;
use super::maths::Maths;
use super::numbers::Numbers;
use super::template::Template;

const LARGEST: usize = 1024 * 1024;

/// Sentences and what they mean, out of a JSON file. `docs/intents.md` says what may stand in it.
///
/// ```
/// use toolgate_intents::Pack;
///
/// let mine = Pack::read(r#"{ "intents": [{
///     "sentences": ["good night"],
///     "tool": "activate_scene",
///     "arguments": { "sceneName": "Night" },
///     "answer": "Sleep well."
/// }] }"#).unwrap();
/// let _all = Pack::english().with(mine);
///
/// let error = Pack::read(r#"{ "intents": [{ "sentences": ["turn (on"] }] }"#).unwrap_err();
/// assert!(error.to_string().starts_with("line 1, column 41: the sentence 'turn (on' is wrong at character 6"), "{error}");
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pack {
    pub(crate) language: String,
    pub(crate) fillers: Vec<String>,
    /// The same, and they may also stand after free text.
    pub(crate) polite: Vec<String>,
    pub(crate) small: Vec<String>,
    pub(crate) replace: HashMap<String, String>,
    pub(crate) numbers: Numbers,
    pub(crate) maths: Maths,
    pub(crate) dates: Dates,
    pub(crate) replies: Replies,
    /// Words for what was spoken of last: `it`.
    pub(crate) pronouns: Vec<String>,
    pub(crate) groups: Groups,
    pub(crate) texts: HashMap<String, String>,
    pub(crate) slots: HashMap<String, SlotKind>,
    /// What one of the values of a slot is called: `place`. Without it nothing is said of what is no value.
    pub(crate) nouns: HashMap<String, String>,
    pub(crate) intents: Vec<Intent>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Groups {
    /// Said before what all of them have in their names: `all the`.
    pub(crate) all: Vec<String>,
    pub(crate) everything: Vec<String>,
    /// Said between two of them, and between two wishes.
    pub(crate) and: Vec<String>,
    pub(crate) then: Vec<String>,
    pub(crate) plural: Vec<String>,
    /// What things are called together that need not have it in their names: `lights`.
    pub(crate) kinds: Vec<Kind>,
}

impl Groups {
    pub(crate) fn merge(&mut self, more: Self) {
        self.all.extend(more.all);
        self.everything.extend(more.everything);
        self.and.extend(more.and);
        self.then.extend(more.then);
        self.plural.extend(more.plural);
        self.kinds.extend(more.kinds);
    }
}

/// What makes a thing one of a kind: its name, or what a tool says of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    /// What they are called. A name with one of these words makes it one of them.
    pub(crate) words: Vec<String>,
    /// From an item of a list to what it is.
    pub(crate) pointer: String,
    /// What they may be there.
    pub(crate) is: Vec<String>,
    /// A name with one of these words makes it something else.
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Replies {
    pub(crate) yes: Vec<String>,
    pub(crate) no: Vec<String>,
    pub(crate) all: Vec<String>,
    /// `first` is 1, `last` is 0.
    pub(crate) ordinals: HashMap<String, usize>,
    pub(crate) small: Vec<String>,
}

impl Replies {
    pub(crate) fn merge(&mut self, more: Self) {
        self.yes.extend(more.yes);
        self.no.extend(more.no);
        self.all.extend(more.all);
        self.ordinals.extend(more.ordinals);
        self.small.extend(more.small);
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SlotKind {
    Number,
    Range(Range),
    Expression,
    Date,
    Text,
    Values(Values),
    List(Box<ListSource>),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// What it is a number of: `volume`.
    pub(crate) noun: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Values {
    Plain(Vec<String>),
    /// No words: the value itself is one.
    Spoken(BTreeMap<String, Vec<String>>),
}

/// A tool whose result has the names that may be said. Only a tool that changes nothing is ever asked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSource {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// To the names; `*` is every item of a list.
    pub(crate) pointer: String,
    /// From the same item to where it is, which tells things of the same name apart.
    #[serde(default)]
    pub(crate) qualifier: Option<String>,
    /// Only names with one of these words.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// And items with these values at these pointers, or one of several, whatever their names.
    #[serde(default)]
    pub(crate) or: Map<String, Value>,
    /// Only names with none of these words.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Which of them `everything` means; all if it is left out.
    #[serde(default)]
    pub(crate) everything: Option<Everything>,
    /// What one of them is called: `device`.
    pub(crate) noun: String,
    /// What many of them are called: `devices`.
    pub(crate) nouns: String,
}

/// What a person means who says `everything`: a lock is a device, but nobody turns it off.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Everything {
    /// From an item of a list to what it is.
    pub(crate) pointer: String,
    /// What it must be there, if anything is.
    pub(crate) is: Vec<String>,
    /// A name with one of these words is left out, unless it has that of a kind: a `front door light` is a light.
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Intent {
    pub(crate) sentences: Vec<Template>,
    /// Shown to people who ask what can be said; with `{slot}` where the name of something stands that is there.
    pub(crate) example: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    /// True if nothing but exact names will do.
    pub(crate) exact: bool,
    pub(crate) answer: Answer,
    /// What it does, for people: `switch devices`.
    pub(crate) does: Option<String>,
    /// A slot that no sentence has: any of its list may be meant, and if that is more than one it is asked back.
    pub(crate) any: Option<String>,
    /// True if it fits names that are there only: other words in their place mean something else.
    pub(crate) known: bool,
    pub(crate) say: Option<String>,
    /// What is asked where something is missing; the answer is heard as if it had been said at once. A `tool` beside it is
    /// what would be needed then.
    pub(crate) ask: Option<String>,
    /// True if the answer is what can be said.
    pub(crate) help: bool,
    /// How many packs it was added to: the latest word counts.
    #[serde(skip)]
    pub(crate) layer: usize,
}

/// Why a language pack can not be used.
///
/// ```
/// use toolgate_intents::Pack;
///
/// let error = Pack::read("{").unwrap_err();
/// assert_eq!((error.line, error.column), (1, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if *line == 0 { String::new() } else { format!("line {line}, column {column}: ") })]
#[non_exhaustive]
pub struct PackError {
    /// Counted from 1; 0 if it is the whole that does not fit together.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
}

impl PackError {
    pub(crate) fn whole(reason: String) -> Self {
        Self {
            line: 0,
            column: 0,
            reason,
        }
    }
}

impl Pack {
    /// The one that ships.
    pub fn english() -> Self {
        // A test reads it: it can not fail in a program that was built.
        Self::read(include_str!("en.json")).unwrap_or_default()
    }

    /// Reads one from JSON.
    pub fn read(json: &str) -> Result<Self, PackError> {
        if json.len() > LARGEST {
            let reason = format!(
                "a language pack may have {LARGEST} bytes, and this has {}",
                json.len()
            );
            return Err(PackError::whole(reason));
        }
        let pack = serde_json::from_str(json.trim_start_matches('\u{feff}'));
        pack.map(Self::with_home_tools).map_err(|error| {
            let text = error.to_string();
            let reason = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(reason, _)| reason);
            PackError {
                line: error.line(),
                column: error.column(),
                reason: toolgate_core::escape(reason),
            }
        })
    }

    /// Sentences name the tools of a home by what they are for, such as `home.control_device`. They
    /// are looked up under the names of the first protocol, which those of the others answer to.
    fn with_home_tools(mut self) -> Self {
        let intents = self.intents.iter_mut();
        let intents = intents.filter_map(|intent| intent.tool.as_mut());
        let lists = self.slots.values_mut().filter_map(|slot| match slot {
            SlotKind::List(source) => Some(&mut source.tool),
            _ => None,
        });
        for tool in intents.chain(lists) {
            if let Some(role) = HomeTool::from_role(tool) {
                *tool = role.name(DIALECTS[0]);
            }
        }
        self
    }

    /// This one and more sentences. Where both understand a sentence equally well, the added one wins; its texts and slots
    /// replace those of the same name.
    #[must_use]
    pub fn with(mut self, more: Self) -> Self {
        if !more.language.is_empty() {
            self.language = more.language;
        }
        self.fillers.extend(more.fillers);
        self.polite.extend(more.polite);
        self.small.extend(more.small);
        self.replace.extend(more.replace);
        self.numbers.merge(more.numbers);
        self.maths.merge(more.maths);
        self.dates.merge(more.dates);
        self.replies.merge(more.replies);
        self.pronouns.extend(more.pronouns);
        self.groups.merge(more.groups);
        self.texts.extend(more.texts);
        self.slots.extend(more.slots);
        self.nouns.extend(more.nouns);
        let top = self
            .intents
            .iter()
            .map(|intent| intent.layer + 1)
            .max()
            .unwrap_or(0);
        let added = more.intents.into_iter().map(|intent| Intent {
            layer: intent.layer + top,
            ..intent
        });
        self.intents.extend(added);
        self
    }

    /// Says what does not fit together, such as a slot that nothing is known of.
    pub fn check(&self) -> Result<(), PackError> {
        Engine::new(self.clone()).map(drop)
    }
}

#[cfg(test)]
mod tests;
