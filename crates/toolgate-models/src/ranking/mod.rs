//! Finds the tools that fit a request best, because small models can't handle many tools.
//!
//! Looks up the words of the request in the tools' own texts. This uses no service, and the same
//! request always finds the same tools.

#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;

use serde_json::Value;
use toolgate_core::ToolDefinition;

use crate::Catalog;
use words::NormalizedWords;

#[derive(Debug, Clone, Copy)]
pub(crate) struct RankingOptions<'a> {
    /// At most this many tools; 0 means no limit.
    pub(crate) max_tools: usize,
    /// At most this many tokens in total; 0 means no limit.
    pub(crate) max_tokens: usize,
    /// The most that the provider accepts, pinned tools included.
    pub(crate) provider_limit: Option<usize>,
    pub(crate) pinned: &'a [String],
    /// Listed names that are preferred while there is room, the last first.
    pub(crate) remembered: &'a [String],
}

/// The best tools for a request, as sorted positions in the catalog. `None` if all of them fit.
pub(crate) fn choose_tools(
    catalog: &Catalog,
    request: &str,
    options: &RankingOptions<'_>,
) -> Option<Vec<usize>> {
    let or_all = |limit: usize| if limit == 0 { usize::MAX } else { limit };
    let limit = options.provider_limit.unwrap_or(usize::MAX);
    let (most, budget) = (
        or_all(options.max_tools).min(limit),
        or_all(options.max_tokens),
    );
    let tools = catalog.tools();
    let total: usize = tools.iter().map(|tool| tool.tokens).sum();
    if tools.len() <= most && total <= budget {
        return None;
    }
    let mut chosen = Vec::new();
    let mut is_chosen = vec![false; tools.len()];
    for position in catalog.positions_of(options.pinned) {
        if chosen.len() < limit && !std::mem::replace(&mut is_chosen[position], true) {
            chosen.push(position);
        }
    }
    let mut spent: usize = chosen.iter().map(|position| tools[*position].tokens).sum();
    let remembered: Vec<usize> = catalog.positions_of(options.remembered).collect();
    let best = catalog.index().rank(request);
    for position in remembered.into_iter().rev().chain(best) {
        if chosen.len() >= most {
            break;
        }
        let fits = spent.saturating_add(tools[position].tokens) <= budget;
        if fits && !std::mem::replace(&mut is_chosen[position], true) {
            spent += tools[position].tokens;
            chosen.push(position);
        }
    }
    chosen.sort_unstable();
    Some(chosen)
}

/// For each word, the tools that contain it and its weight there.
pub(crate) struct ToolIndex {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

// How much a word counts, by where it is. A tool's name says most about it.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;
const PARAMETER: f64 = 1.0;
const VALUE: f64 = 0.5;

// Bounds for words of one tool and bytes of one text. A tool with more would match everything.
const MAX_WORDS: usize = 1_000;
const MAX_BYTES: usize = 4 << 10;

impl ToolIndex {
    pub(crate) fn build<'a>(definitions: impl Iterator<Item = &'a ToolDefinition>) -> Self {
        let mut index = Self {
            postings: HashMap::new(),
            lengths: Vec::new(),
            average: 1.0,
        };
        for (position, definition) in definitions.enumerate() {
            let words = WeightedWords::from_definition(definition);
            index.lengths.push(words.length);
            for (word, weight) in words.weights {
                index
                    .postings
                    .entry(word)
                    .or_default()
                    .push((position, weight));
            }
        }
        let tools = index.lengths.len().max(1);
        index.average = (index.lengths.iter().sum::<f64>() / tools as f64).max(1.0);
        index
    }

    /// All tools, best first. Ties keep the catalog's order.
    fn rank(&self, request: &str) -> Vec<usize> {
        let scores = self.scores(request);
        let mut positions: Vec<usize> = (0..scores.len()).collect();
        positions.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        positions
    }

    // BM25: a word counts more if it is rare, if it has much weight in the tool, and if the tool
    // has few other words.
    fn scores(&self, request: &str) -> Vec<f64> {
        // The usual names of BM25's parameters: how soon repeated words stop counting, and how much
        // long texts are penalised.
        const K1: f64 = 1.2;
        const B: f64 = 0.6;
        let mut scores = vec![0.0; self.lengths.len()];
        let tools = self.lengths.len() as f64;
        let mut request_words =
            NormalizedWords::from_text(&request[..request.floor_char_boundary(MAX_BYTES)])
                .distinct();
        request_words.truncate(MAX_WORDS);
        for word in request_words {
            let Some(postings) = self.postings.get(&word) else {
                continue;
            };
            let matching = postings.len() as f64;
            let rarity = (1.0 + (tools - matching + 0.5) / (matching + 0.5)).ln();
            for (position, weight) in postings {
                let length = 1.0 - B + B * self.lengths[*position] / self.average;
                scores[*position] += rarity * weight * (K1 + 1.0) / (weight + K1 * length);
            }
        }
        scores
    }
}

#[derive(Default)]
struct WeightedWords {
    weights: HashMap<String, f64>,
    length: f64,
    count: usize,
}

impl WeightedWords {
    fn from_definition(definition: &ToolDefinition) -> Self {
        let mut words = Self::default();
        words.add(NormalizedWords::from_text(definition.name()), NAME);
        words.add_text(definition.title().unwrap_or_default(), TITLE);
        words.add_text(definition.description(), DESCRIPTION);
        words.add_parameters(definition.parameters());
        words
    }

    fn add(&mut self, words: NormalizedWords, weight: f64) {
        for word in words.distinct() {
            self.count += 1;
            if self.count > MAX_WORDS {
                return;
            }
            *self.weights.entry(word).or_default() += weight;
            self.length += weight;
        }
    }

    fn add_text(&mut self, text: &str, weight: f64) {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        self.add(NormalizedWords::from_text(text), weight);
    }

    // Includes nested parameters.
    fn add_parameters(&mut self, schema: &Value) {
        let mut ahead = vec![schema];
        while let Some(schema) = ahead.pop() {
            if self.count > MAX_WORDS {
                return;
            }
            let values = schema.get("enum").and_then(Value::as_array);
            for value in values
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .take(50)
            {
                self.add_text(value, VALUE);
            }
            let Value::Object(keywords) = schema else {
                continue;
            };
            for (name, property) in keywords
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                self.add(NormalizedWords::from_text(name), PARAMETER);
                let description = property.get("description").and_then(Value::as_str);
                self.add_text(description.unwrap_or_default(), VALUE);
                ahead.push(property);
            }
            ahead.extend(keywords.get("items"));
            let lists = ["anyOf", "oneOf", "allOf"].into_iter();
            let lists = lists.filter_map(|keyword| keywords.get(keyword)?.as_array());
            ahead.extend(lists.flatten());
        }
    }
}
