//! Which tools a model is offered in a turn.

use std::sync::Arc;

use toolgate_core::escape;

use super::Conversation;
use super::running::Running;
use crate::event::tell_waits;
use crate::ranking::{self, Choice};
use crate::router::PATIENCE;
use crate::{Catalog, Event, Listener, Offer};

impl Running<'_> {
    /// Looks whether there are other tools now; the model is offered the same ones as long as that is not so.
    pub(super) fn refresh_tools(&mut self) {
        let tools = self.conversation.toolbox.current();
        let catalog = self.conversation.router.catalog(&tools);
        if !Arc::ptr_eq(&catalog, &self.catalog) {
            self.offer = choose(self.conversation, &catalog, self.text, self.listener);
            self.catalog = catalog;
        }
    }
}

/// All tools, or those that suit the person's words best where all would be too many.
pub(super) fn choose(
    conversation: &mut Conversation,
    catalog: &Arc<Catalog>,
    text: &str,
    listener: &mut dyn Listener,
) -> Offer {
    let offer = offered(conversation, catalog, text);
    tell_once(conversation, catalog, &offer, listener);
    offer
}

fn offered(conversation: &Conversation, catalog: &Arc<Catalog>, text: &str) -> Offer {
    let settings = &conversation.settings;
    let tokens = match settings.max_tool_tokens {
        0 => conversation.router.window() / 2,
        tokens => tokens,
    };
    let choice = Choice {
        most: settings.max_tools,
        tokens,
        limit: conversation.router.most_tools(),
        pinned: &settings.pinned_tools,
        remembered: &conversation.used_tools,
    };
    match ranking::choose(catalog, text, &choice) {
        Some(best) => Offer::some(Arc::clone(catalog), best),
        None => Offer::all(Arc::clone(catalog)),
    }
}

impl Conversation {
    /// A model is told of its tools once: those of servers that are starting are waited for, unless it is certain that they are
    /// not needed.
    pub(super) async fn wait_for_tools(&self, text: &str, listener: &mut dyn Listener) {
        if self.toolbox.has_all() {
            return;
        }
        let wants_all = tokio::time::timeout(PATIENCE, self.router.wants_all_tools(text));
        if wants_all.await.unwrap_or(true) {
            self.toolbox.wait_for_all(&mut tell_waits(listener)).await;
        }
    }

    /// The names in the settings' `pinned_tools` that mean no tool.
    pub fn unknown_pins(&self) -> Vec<String> {
        let catalog = self.router.catalog(&self.toolbox.current());
        let pinned = self.settings.pinned_tools.iter();
        let is_unknown =
            |name: &&String| catalog.places(std::slice::from_ref(*name)).next().is_none();
        pinned.filter(is_unknown).cloned().collect()
    }

    /// The tools that a question would go out with.
    pub fn offer(&self, text: &str) -> Offer {
        let catalog = self.router.catalog(&self.toolbox.current());
        offered(self, &catalog, text)
    }

    /// What keeps the other tools of its catalog out of an offer; `None` if all of them are in it.
    pub fn why_not_all(&self, offer: &Offer) -> Option<String> {
        let offered = offer.len();
        if offered == offer.catalog().tools().len() {
            return None;
        }
        let (settings, provider) = (&self.settings, self.router.source());
        Some(match self.router.most_tools() {
            Some(most) if offered == most => format!("{provider} takes no more at once"),
            _ if (1..=offered).contains(&settings.max_tools) => "model.maxTools says so".to_owned(),
            _ if settings.max_tool_tokens > 0 => "more would exceed model.maxToolTokens".to_owned(),
            _ => format!(
                "more would take over half of the {} tokens that the model holds (model.contextTokens, \
                 model.maxToolTokens)",
                self.router.window()
            ),
        })
    }
}

/// A model that used a tool should find it again in the next turn, where the person may say no more than "and the other one".
pub(super) fn remember(used_tools: &mut Vec<String>, name: &str) {
    /// More would leave no place for others.
    const MOST: usize = 8;
    if used_tools.last().is_some_and(|last| last == name) {
        return;
    }
    used_tools.retain(|used| used != name);
    used_tools.push(name.to_owned());
    if used_tools.len() > MOST {
        used_tools.remove(0);
    }
}

fn tell_once(
    conversation: &mut Conversation,
    catalog: &Arc<Catalog>,
    offer: &Offer,
    listener: &mut dyn Listener,
) {
    let told = conversation.told.as_ref();
    if told.is_some_and(|told| Arc::ptr_eq(told, catalog)) {
        return;
    }
    conversation.told = Some(Arc::clone(catalog));
    let provider = conversation.router.source();
    if let Some(names) = left_out(catalog) {
        let text = format!("{provider} can not be offered the tool {names}");
        listener.event(Event::Notice(&text));
    }
    let pinned = catalog.places(&conversation.settings.pinned_tools);
    let names: Vec<String> = pinned
        .map(|place| &catalog.tools()[place].wire_name)
        .filter(|name| !offer.iter().any(|tool| tool.wire_name == **name))
        .map(|name| format!("'{}'", escape(name)))
        .collect();
    if let Some(most) = conversation.router.most_tools()
        && !names.is_empty()
    {
        listener.event(Event::Notice(&format!(
            "{provider} takes no more tools at once than {most}: though pinned, {} can not be offered (model.pinnedTools).",
            names.join(", ")
        )));
    }
    let (offered, all) = (offer.len(), catalog.tools().len());
    if let Some(why) = conversation.why_not_all(offer) {
        let text = match offered {
            0 => format!("Of {all} tools, none goes out with a question: {why}."),
            _ => format!(
                "Of {all} tools, each question goes out with the {offered} that suit it best: {why}."
            ),
        };
        listener.event(Event::Notice(&text));
    }
}

/// The tools that a provider can not be offered, the first with the reason.
fn left_out(catalog: &Catalog) -> Option<String> {
    /// The names of more fill the screen.
    const MOST: usize = 10;
    let [first, others @ ..] = catalog.left_out() else {
        return None;
    };
    let mut text = format!("'{}' ({})", escape(&first.name), escape(&first.reason));
    for other in others.iter().take(MOST) {
        text.push_str(&format!(", nor '{}'", escape(&other.name)));
    }
    if others.len() > MOST {
        text.push_str(&format!(", nor {} more", others.len() - MOST));
    }
    Some(text)
}
