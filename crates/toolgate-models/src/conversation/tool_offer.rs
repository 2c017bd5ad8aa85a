//! Chooses which tools the model is offered in a turn.

use std::sync::Arc;

use toolgate_core::text::escape;

use super::Conversation;
use super::running_turn::RunningTurn;
use crate::event::forward_waits;
use crate::ranking::{self, RankingOptions};
use crate::router::SENTENCES_TIMEOUT;
use crate::{Catalog, ModelEvent, ModelListener, OfferedTools};

impl RunningTurn<'_> {
    // The offer stays the same as long as the tool list does.
    pub(super) fn refresh_tools(&mut self) {
        let tools = self.conversation.toolbox.current();
        let catalog = self.conversation.router.catalog(&tools);
        if !Arc::ptr_eq(&catalog, &self.catalog) {
            self.offer = choose_offer(self.conversation, &catalog, self.text, self.listener);
            self.catalog = catalog;
        }
    }
}

pub(super) fn choose_offer(
    conversation: &mut Conversation,
    catalog: &Arc<Catalog>,
    text: &str,
    listener: &mut dyn ModelListener,
) -> OfferedTools {
    let offer = build_offer(conversation, catalog, text);
    announce_offer(conversation, catalog, &offer, listener);
    offer
}

fn build_offer(conversation: &Conversation, catalog: &Arc<Catalog>, text: &str) -> OfferedTools {
    let settings = &conversation.settings;
    let max_tokens = match settings.max_tool_tokens {
        0 => conversation.router.window() / 2,
        tokens => tokens,
    };
    let options = RankingOptions {
        max_tools: settings.max_tools,
        max_tokens,
        provider_limit: conversation.router.tool_limit(),
        pinned: &settings.pinned_tools,
        remembered: &conversation.used_tools,
    };
    match ranking::choose_tools(catalog, text, &options) {
        Some(best) => OfferedTools::subset(Arc::clone(catalog), best),
        None => OfferedTools::all(Arc::clone(catalog)),
    }
}

impl Conversation {
    // Waits for servers that are still starting, because the model sees the tools only at the start
    // of the turn. Sentences that certainly answer without them don't wait.
    pub(super) async fn wait_for_tools(&self, text: &str, listener: &mut dyn ModelListener) {
        if self.toolbox.is_complete() {
            return;
        }
        let wants_all = tokio::time::timeout(SENTENCES_TIMEOUT, self.router.needs_all_tools(text));
        if wants_all.await.unwrap_or(true) {
            self.toolbox
                .wait_for_all(&mut forward_waits(listener))
                .await;
        }
    }

    /// The names in the settings' `pinned_tools` that match no tool.
    pub fn unknown_pinned_tools(&self) -> Vec<String> {
        let catalog = self.router.catalog(&self.toolbox.current());
        let pinned = self.settings.pinned_tools.iter();
        let is_unknown = |name: &&String| {
            catalog
                .positions_of(std::slice::from_ref(*name))
                .next()
                .is_none()
        };
        pinned.filter(is_unknown).cloned().collect()
    }

    /// The tools that the model would be offered for this text.
    pub fn offer(&self, text: &str) -> OfferedTools {
        let catalog = self.router.catalog(&self.toolbox.current());
        build_offer(self, &catalog, text)
    }

    /// Why an offer lacks some tools of its catalog, for a person; `None` if it has all of them.
    pub fn explain_omitted_tools(&self, offer: &OfferedTools) -> Option<String> {
        let offered = offer.len();
        if offered == offer.catalog().tools().len() {
            return None;
        }
        let (settings, provider) = (&self.settings, self.router.source());
        Some(match self.router.tool_limit() {
            Some(most) if offered == most => format!("{provider} accepts no more at once"),
            _ if (1..=offered).contains(&settings.max_tools) => {
                "limited by model.maxTools".to_owned()
            }
            _ if settings.max_tool_tokens > 0 => "more would exceed model.maxToolTokens".to_owned(),
            _ => format!(
                "more would take over half of the {} tokens that the model holds; see \
                 model.contextTokens and model.maxToolTokens",
                self.router.window()
            ),
        })
    }
}

// The next request may be as short as "and the other one", which matches no tool, so tools that
// were used stay in the offer.
pub(super) fn remember_tool(used_tools: &mut Vec<String>, name: &str) {
    // More would leave no room for other tools.
    const MAX_REMEMBERED: usize = 8;
    if used_tools.last().is_some_and(|last| last == name) {
        return;
    }
    used_tools.retain(|used| used != name);
    used_tools.push(name.to_owned());
    if used_tools.len() > MAX_REMEMBERED {
        used_tools.remove(0);
    }
}

fn announce_offer(
    conversation: &mut Conversation,
    catalog: &Arc<Catalog>,
    offer: &OfferedTools,
    listener: &mut dyn ModelListener,
) {
    let announced = conversation.announced_catalog.as_ref();
    if announced.is_some_and(|announced| Arc::ptr_eq(announced, catalog)) {
        return;
    }
    conversation.announced_catalog = Some(Arc::clone(catalog));
    let provider = conversation.router.source();
    if let Some(names) = describe_excluded(catalog) {
        let text = format!("{provider} can't be offered the tool {names}");
        listener.event(ModelEvent::Notice(&text));
    }
    let pinned = catalog.positions_of(&conversation.settings.pinned_tools);
    let names: Vec<String> = pinned
        .map(|place| &catalog.tools()[place].wire_name)
        .filter(|name| !offer.iter().any(|tool| tool.wire_name == **name))
        .map(|name| format!("'{}'", escape(name)))
        .collect();
    if let Some(most) = conversation.router.tool_limit()
        && !names.is_empty()
    {
        listener.event(ModelEvent::Notice(&format!(
            "{provider} accepts at most {most} tools at once, so these can't be offered although they are pinned: {} (model.pinnedTools).",
            names.join(", ")
        )));
    }
    let (offered, all) = (offer.len(), catalog.tools().len());
    if let Some(why) = conversation.explain_omitted_tools(offer) {
        let text = match offered {
            0 => format!("Questions are sent with none of the {all} tools ({why})."),
            _ => format!(
                "Each question is sent with the {offered} of {all} tools that fit it best ({why})."
            ),
        };
        listener.event(ModelEvent::Notice(&text));
    }
}

// Gives a reason only for the first tool, and names the others.
fn describe_excluded(catalog: &Catalog) -> Option<String> {
    // More names would fill the screen.
    const MAX_LISTED: usize = 10;
    let [first, others @ ..] = catalog.excluded() else {
        return None;
    };
    let mut text = format!("'{}' ({})", escape(&first.name), escape(&first.reason));
    for other in others.iter().take(MAX_LISTED) {
        text.push_str(&format!(", nor '{}'", escape(&other.name)));
    }
    if others.len() > MAX_LISTED {
        text.push_str(&format!(", nor {} more", others.len() - MAX_LISTED));
    }
    Some(text)
}
