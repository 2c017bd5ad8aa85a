//! From an utterance to words: a queue, an engine, and filters.
