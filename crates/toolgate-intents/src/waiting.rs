//! Sentences about tools that are not there yet, because their servers are still starting.

use std::collections::BTreeSet;

use toolgate_core::ToolWaitListener;

use super::engine::{Engine, Filling};
use super::interpreter::SentenceInterpreter;
use super::live::with_name;
use super::lookups::Lookups;
use super::matcher::{ListState, Mercy};
use super::meaning::{Choice, Meaning, Moment, Presence};
use super::memory::SentenceContext;
use super::parts::Parting;
use super::words::Sentence;

impl SentenceInterpreter {
    /// True once the tools that tell these lists can be asked: those that are listed while their server still starts. Waits for
    /// them if there is somebody to tell that.
    pub(super) async fn are_readable(
        &self,
        slots: &BTreeSet<usize>,
        waits: &mut Option<ToolWaitListener<'_>>,
    ) -> bool {
        let list = self.toolbox.current();
        let lists = slots.iter().filter_map(|slot| self.engine.list_tool(*slot));
        let there = lists.filter(|tool| !with_name(tool, &list).is_empty());
        for tool in there.collect::<BTreeSet<_>>() {
            match waits {
                Some(waits) => self.toolbox.wait_for_tool(tool, waits).await,
                None if !self.toolbox.is_decided(tool) => return false,
                None => {}
            }
        }
        true
    }

    /// The tool that this sentence would need if it were there; none if it needs no other than there are, or if no more are to
    /// come.
    pub(super) fn awaited_tool(&self, text: &str, context: &SentenceContext<'_>) -> Option<String> {
        if self.toolbox.has_all() {
            return None;
        }
        let list = self.toolbox.current();
        let is_absent = |tool: &str| with_name(tool, &list).is_empty();
        let known = self.live.snapshot(&self.engine, &list);
        let mut lists = known.lists;
        for slot in 0..self.engine.slots.len() {
            if self.engine.list_tool(slot).is_some_and(is_absent) {
                // Whatever is said where a name belongs may be one.
                lists.insert(slot, ListState::Unreadable(String::new()));
            }
        }
        let intents = self.engine.pack.intents.iter();
        let as_if_there = intents
            .zip(known.tools.iter())
            .map(|(intent, presence)| match (&intent.tool, presence) {
                (Some(tool), Presence::Absent) => Presence::Ready {
                    name: tool.clone(),
                    careful: true,
                },
                (_, presence) => presence.clone(),
            })
            .collect::<Vec<_>>();
        let moment = Moment {
            tools: &as_if_there,
            lists: &lists,
            today: (self.today)(),
            last: &context.last_slots(),
            lookups: &Lookups::default(),
        };
        let needed = self.engine.tools_for(text, &moment).unwrap_or_default();
        needed.into_iter().find(|tool| is_absent(tool))
    }
}

impl Engine {
    /// The tool that tells the names for a slot, if it is filled from a list.
    fn list_tool(&self, slot: usize) -> Option<&str> {
        match &self.slots[slot] {
            Filling::List(source) => Some(&source.tool),
            _ => None,
        }
    }

    /// The tools of all that a sentence may mean, or the lists that have to be read before that can be said.
    fn tools_for(&self, text: &str, moment: &Moment<'_>) -> Result<Vec<String>, BTreeSet<usize>> {
        let Some(sentence) = Sentence::read(text, &self.replace) else {
            return Ok(Vec::new());
        };
        let mut parting = Parting::new(self, &sentence, moment);
        for mercy in [Mercy::None, Mercy::Spelling] {
            let whole = self.tools_of_whole(&sentence, moment, mercy)?;
            if let Some(tools) = whole.or(parted(&mut parting, mercy)?) {
                return Ok(tools);
            }
        }
        // Where any words may be a name, a whole sentence would swallow the next one.
        let tools = match parted(&mut parting, Mercy::Unknown)? {
            None => self.tools_of_whole(&sentence, moment, Mercy::Unknown)?,
            tools => tools,
        };
        Ok(tools.unwrap_or_default())
    }

    fn tools_of_whole(
        &self,
        sentence: &Sentence<'_>,
        moment: &Moment<'_>,
        mercy: Mercy,
    ) -> Result<Option<Vec<String>>, BTreeSet<usize>> {
        let intents = &self.pack.intents;
        let may_be = |intent: usize| {
            let needs_name = intents[intent].known && mercy == Mercy::Unknown;
            moment.is_ready(intent) && !needs_name
        };
        let matches = self.matches(sentence, moment, mercy, may_be)?;
        let tools = matches
            .iter()
            .filter_map(|found| intents[found.intent].tool.clone());
        let tools = tools.collect();
        Ok((!matches.is_empty()).then_some(tools))
    }
}

/// The tools of several wishes in one sentence, if all of them are known.
fn parted(parting: &mut Parting<'_>, mercy: Mercy) -> Result<Option<Vec<String>>, BTreeSet<usize>> {
    Ok(match parting.meant(mercy)? {
        Some(Meaning::Act { choice, then, .. }) => Some(tools_in(&[vec![choice], then].concat())),
        Some(Meaning::Ask { choices, .. }) => Some(tools_in(&choices)),
        _ => None,
    })
}

fn tools_in(choices: &[Choice]) -> Vec<String> {
    let calls = choices.iter().flat_map(|choice| &choice.calls);
    calls.map(|call| call.tool.clone()).collect()
}
