//! Waits for tools that a sentence needs and whose servers are still starting.

use std::collections::BTreeSet;

use toolgate_core::ToolWaitListener;

use super::engine::{CompiledSlot, SentenceEngine};
use super::interpreter::SentenceInterpreter;
use super::live_lists::tools_named;
use super::lookups::LookupCache;
use super::matcher::{ListState, MatchTolerance};
use super::meaning::{CallChoice, MatchContext, MissingLists, SentenceMeaning, ToolPresence};
use super::memory::SentenceContext;
use super::splitter::PartSplitter;
use super::words::Sentence;

impl SentenceInterpreter {
    /// Waits until the tools behind these lists can be called, and returns true. Without `waits`,
    /// returns false at once if a server is still starting.
    pub(super) async fn wait_for_lists(
        &self,
        slots: &BTreeSet<usize>,
        waits: &mut Option<ToolWaitListener<'_>>,
    ) -> bool {
        let list = self.toolbox.current();
        let lists = slots.iter().filter_map(|slot| self.engine.list_tool(*slot));
        let available = lists.filter(|tool| !tools_named(tool, &list).is_empty());
        for tool in available.collect::<BTreeSet<_>>() {
            match waits {
                Some(waits) => self.toolbox.wait_for_tool(tool, waits).await,
                None if !self.toolbox.is_availability_known(tool) => return false,
                None => {}
            }
        }
        true
    }

    /// The missing tool that this sentence needs. `None` if it needs none, or if
    /// all servers have started.
    pub(super) fn awaited_tool(&self, text: &str, context: &SentenceContext<'_>) -> Option<String> {
        if self.toolbox.is_complete() {
            return None;
        }
        let list = self.toolbox.current();
        let is_absent = |tool: &str| tools_named(tool, &list).is_empty();
        let known = self.live_lists.snapshot(&self.engine, &list);
        let mut lists = known.lists;
        for slot in 0..self.engine.slots.len() {
            if self.engine.list_tool(slot).is_some_and(is_absent) {
                // The list can't be read yet, so any words may be one of its names.
                lists.insert(slot, ListState::Unreadable(String::new()));
            }
        }
        let intents = self.engine.pack.intents.iter();
        let assumed_presence = intents
            .zip(known.tools.iter())
            .map(|(intent, presence)| match (&intent.tool, presence) {
                (Some(tool), ToolPresence::Absent) => ToolPresence::Ready {
                    name: tool.clone(),
                    careful: true,
                },
                (_, presence) => presence.clone(),
            })
            .collect::<Vec<_>>();
        let context = MatchContext {
            tools: &assumed_presence,
            lists: &lists,
            today: (self.today)(),
            last_slots: &context.last_slots(),
            lookups: &LookupCache::default(),
        };
        let needed = self.engine.tools_for(text, &context).unwrap_or_default();
        needed.into_iter().find(|tool| is_absent(tool))
    }
}

impl SentenceEngine {
    fn list_tool(&self, slot: usize) -> Option<&str> {
        match &self.slots[slot] {
            CompiledSlot::List(source) => Some(&source.tool),
            _ => None,
        }
    }

    // Returns the tools of every possible meaning, or as an error the lists that must be read
    // first.
    fn tools_for(
        &self,
        text: &str,
        context: &MatchContext<'_>,
    ) -> Result<Vec<String>, MissingLists> {
        let Some(sentence) = Sentence::parse(text, &self.replace) else {
            return Ok(Vec::new());
        };
        let mut splitter = PartSplitter::new(self, &sentence, context);
        for tolerance in [MatchTolerance::None, MatchTolerance::Spelling] {
            let whole = self.tools_of_whole(&sentence, context, tolerance)?;
            if let Some(tools) = whole.or(tools_of_parts(&mut splitter, tolerance)?) {
                return Ok(tools);
            }
        }
        // Parts first: if any words may be a name, a name in the whole sentence could swallow the
        // next request.
        let tools = match tools_of_parts(&mut splitter, MatchTolerance::Unknown)? {
            None => self.tools_of_whole(&sentence, context, MatchTolerance::Unknown)?,
            tools => tools,
        };
        Ok(tools.unwrap_or_default())
    }

    fn tools_of_whole(
        &self,
        sentence: &Sentence<'_>,
        context: &MatchContext<'_>,
        tolerance: MatchTolerance,
    ) -> Result<Option<Vec<String>>, MissingLists> {
        let intents = &self.pack.intents;
        let may_be = |intent: usize| {
            let needs_name = intents[intent].known && tolerance == MatchTolerance::Unknown;
            context.is_ready(intent) && !needs_name
        };
        let matches = self.find_matches(sentence, context, tolerance, may_be)?;
        let tools = matches
            .iter()
            .filter_map(|found| intents[found.intent].tool.clone());
        let tools = tools.collect();
        Ok((!matches.is_empty()).then_some(tools))
    }
}

fn tools_of_parts(
    splitter: &mut PartSplitter<'_>,
    tolerance: MatchTolerance,
) -> Result<Option<Vec<String>>, MissingLists> {
    Ok(match splitter.interpret_parts(tolerance)? {
        Some(SentenceMeaning::Act { choice, then, .. }) => {
            Some(tools_in(&[vec![choice], then].concat()))
        }
        Some(SentenceMeaning::Ask { choices, .. }) => Some(tools_in(&choices)),
        _ => None,
    })
}

fn tools_in(choices: &[CallChoice]) -> Vec<String> {
    let calls = choices.iter().flat_map(|choice| &choice.calls);
    calls.map(|call| call.tool.clone()).collect()
}
