//! Decides which context window to request from the server, and checks whether the server uses it.
//!
//! Without a requested size, a server uses its own, often 4096 tokens, and silently cuts the
//! beginning of longer prompts, where the tools are. If the requested size changes, the server
//! loads the model again, which takes seconds. So every request has a size, there are few different
//! sizes, and the size never shrinks.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

const MIN_WINDOW: usize = 8192;
// The largest window that is requested, unless one is configured. Memory use grows with it, by
// gigabytes for typical models.
const MAX_WINDOW: usize = 32_768;

#[derive(Debug)]
pub(super) struct OllamaWindow {
    // From the settings; used exactly as it is.
    fixed: Option<usize>,
    // What the model was trained for; 0 until that is known.
    model_window: AtomicUsize,
    requested: AtomicUsize,
    reading: Mutex<PromptReadings>,
}

#[derive(Debug, Default)]
struct PromptReadings {
    // The size of the previous prompt, which the server may have cached.
    previous: usize,
    // The server confirmed that a prompt of this many tokens wasn't cut.
    confirmed: usize,
    // The server doesn't report the window that the model is loaded with.
    is_unreported: bool,
    has_warned: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PromptReport {
    pub(super) estimate: usize,
    // The window that was requested.
    pub(super) window: usize,
    // How many tokens the server says it read.
    pub(super) input_tokens: u64,
}

impl OllamaWindow {
    pub(super) fn new(fixed: Option<usize>) -> Self {
        Self {
            fixed,
            model_window: AtomicUsize::new(0),
            requested: AtomicUsize::new(0),
            reading: Mutex::default(),
        }
    }

    pub(super) fn learn(&self, model_window: Option<usize>) {
        self.model_window
            .store(model_window.unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn largest(&self) -> usize {
        let model_window = match self.model_window.load(Ordering::Relaxed) {
            0 => MAX_WINDOW,
            known => known,
        };
        self.fixed.unwrap_or(model_window.min(MAX_WINDOW))
    }

    /// The window to request, so that a prompt and its answer fit: 8192 tokens, doubled as often as
    /// needed, and never less than before.
    pub(super) fn fit(&self, prompt: usize, answer: usize) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let step = prompt.saturating_add(answer).clamp(MIN_WINDOW, MAX_WINDOW);
        let wanted = step.next_power_of_two().min(self.largest());
        self.requested
            .fetch_max(wanted, Ordering::Relaxed)
            .max(wanted)
    }

    /// True if the server seems to have read less than was sent, and asking for its actual window
    /// may settle that. Ignores short prompts, because they fit into any server's window.
    pub(super) fn may_be_cut(
        &self,
        PromptReport {
            estimate,
            input_tokens,
            ..
        }: PromptReport,
    ) -> bool {
        const SHORT: usize = 2048;
        let reading = self.reading.lock();
        let read = usize::try_from(input_tokens).unwrap_or(usize::MAX);
        let may_tell = !reading.is_unreported && !reading.has_warned;
        may_tell && read < estimate && estimate > SHORT.max(reading.confirmed)
    }

    pub(super) fn mark_window_unreported(&self) {
        let mut reading = self.reading.lock();
        reading.is_unreported = true;
    }

    /// Compares what the server says it read with what was sent. Returns a sentence for the person
    /// if the prompt was cut, but only once. `loaded` is the window that the server reports; with
    /// it, nothing has to be guessed.
    ///
    /// The estimate isn't a count. Without `loaded`, only a gap of more than half is a cut, or a
    /// smaller one if what was read fills a window of a usual size. Some versions don't count what
    /// they have cached, so they are credited with the request before. The first request may still
    /// meet a cache that another program filled, and the sentence says so.
    pub(super) fn check(&self, prompt: PromptReport, loaded: Option<usize>) -> Option<String> {
        const SMALL: usize = 1024;
        let PromptReport {
            estimate,
            window,
            input_tokens,
        } = prompt;
        let read = usize::try_from(input_tokens).unwrap_or(usize::MAX);
        let mut reading = self.reading.lock();
        let with_cache = read.saturating_add(reading.previous);
        reading.previous = with_cache.min(estimate).max(read);
        let missing = estimate.saturating_sub(with_cache);
        let gap = match fills_a_window(read, window) {
            true => estimate / 5,
            false => estimate / 5 * 3,
        };
        let seems_cut = read > 0 && missing > SMALL.max(gap);
        let loaded = loaded.map(|loaded| loaded.min(window));
        reading.confirmed = reading.confirmed.max(loaded.unwrap_or(0));
        let cut = match loaded {
            Some(loaded) => loaded < estimate.min(window),
            None => seems_cut && estimate > reading.confirmed,
        };
        if !(cut || estimate > window) || std::mem::replace(&mut reading.has_warned, true) {
            return None;
        }
        if !cut {
            return Some(format!(
                "The prompt takes about {estimate} tokens and the model's window is {window}: Ollama may cut its beginning, \
                 where the tools are. Offer fewer tools (model.maxTools in the configuration), or raise \
                 model.contextTokens if the model can hold more."
            ));
        }
        if let Some(loaded) = loaded {
            return Some(format!(
                "Ollama holds the model with a window of {loaded} tokens, though it was asked for {window}: of about {estimate} \
                 tokens it cut the beginning, where the tools are. Start it with OLLAMA_CONTEXT_LENGTH={window}, or offer \
                 fewer tools ('maxTools' of the model)."
            ));
        }
        Some(format!(
            "Ollama read only {read} of about {estimate} tokens: it seems to have cut the beginning of the prompt, where the \
             tools are. It was asked for a window of {window} tokens; if the server allows less, start it with \
             OLLAMA_CONTEXT_LENGTH={window}, or offer fewer tools (model.maxTools). An Ollama that still has the \
             beginning in its cache may count too little; then all is well."
        ))
    }
}

// True for a power of two or slightly less, such as 4090 tokens, if more were requested: that is
// probably the server's own window.
fn fills_a_window(read: usize, requested: usize) -> bool {
    let full = read.checked_next_power_of_two().unwrap_or(usize::MAX);
    full < requested && full - read <= full / 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(estimate: usize, window: usize, input_tokens: u64) -> PromptReport {
        PromptReport {
            estimate,
            window,
            input_tokens,
        }
    }

    #[test]
    fn a_window_fits_prompt_and_answer_in_few_steps() {
        for (prompt, answer, expected) in [
            (100, 1000, 8192),
            (4000, 4096, 8192),
            (5000, 4096, 16_384),
            (14_000, 4096, 32_768),
            (500_000, 4096, 32_768),
            (usize::MAX, 4096, 32_768),
        ] {
            assert_eq!(
                OllamaWindow::new(None).fit(prompt, answer),
                expected,
                "{prompt}"
            );
        }
    }

    #[test]
    fn a_window_never_shrinks_so_that_the_model_stays_loaded() {
        let window = OllamaWindow::new(None);
        let sizes = [1000, 9000, 1000].map(|prompt| window.fit(prompt, 4096));
        assert_eq!(sizes, [8192, 16_384, 16_384]);
    }

    #[test]
    fn a_configured_window_is_used_exactly() {
        let window = OllamaWindow::new(Some(3000));
        window.learn(Some(2048));
        assert_eq!(
            [window.fit(10, 10), window.fit(90_000, 10), window.largest()],
            [3000; 3]
        );
    }

    #[test]
    fn a_window_is_not_larger_than_the_model() {
        for (model_window, most) in [
            (Some(4096), 4096),
            (Some(20_000), 20_000),
            (Some(262_144), 32_768),
            (None, 32_768),
        ] {
            let window = OllamaWindow::new(None);
            window.learn(model_window);
            assert_eq!((window.largest(), window.fit(90_000, 4096)), (most, most));
        }
    }

    #[test]
    fn a_cut_prompt_is_reported_once_with_numbers() {
        let window = OllamaWindow::new(None);
        let told = window.check(report(15_700, 16_384, 2048), None).unwrap();
        for part in [
            "only 2048 of about 15700",
            "window of 16384",
            "OLLAMA_CONTEXT_LENGTH=16384",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(window.check(report(15_900, 16_384, 2048), None), None);
    }

    #[test]
    fn a_prompt_that_fills_a_smaller_window_of_a_usual_size_was_cut() {
        for (estimate, window, count, is_cut) in [
            (9530, 16_384, 4096, true),
            (9530, 16_384, 4040, true),
            (9530, 16_384, 3900, false),
            (9530, 16_384, 4200, false),
            (5000, 16_384, 4096, false),
            (20_000, 32_768, 16_384, false),
            (26_000, 32_768, 16_384, true),
            (20_000, 16_384, 16_384, true),
        ] {
            let told = OllamaWindow::new(None).check(report(estimate, window, count), None);
            assert_eq!(told.is_some(), is_cut, "{estimate} {count}: {told:?}");
        }
    }

    #[test]
    fn an_oversized_prompt_is_reported_once() {
        for count in [0, 4096, 9000] {
            let window = OllamaWindow::new(Some(4096));
            let told = window.check(report(9000, 4096, count), None).unwrap();
            assert!(
                told.contains("about 9000") && told.contains("4096"),
                "{told}"
            );
            assert_eq!(window.check(report(9000, 4096, count), None), None);
        }
    }

    #[test]
    fn a_bad_estimate_or_a_cache_is_not_a_cut() {
        let rounds: [&[(usize, u64)]; 5] = [
            &[(15_700, 9000)],
            &[(900, 100)],
            &[(15_700, 0)],
            &[(15_700, 11_000), (16_000, 200), (16_300, 300)],
            &[(3000, 2800), (15_700, 10_000), (15_800, 20)],
        ];
        for rounds in rounds {
            let window = OllamaWindow::new(None);
            for (estimate, count) in rounds {
                assert_eq!(
                    window.check(report(*estimate, 16_384, *count), None),
                    None,
                    "{estimate} {count}"
                );
            }
        }
    }

    #[test]
    fn the_reported_window_wins_over_estimates() {
        for (estimate, count, loaded, is_cut) in [
            (9300, 4096, 4096, true),
            (15_700, 2048, 16_384, false),
            (15_700, 2048, 32_768, false),
            (3000, 2500, 4096, false),
        ] {
            let window = OllamaWindow::new(None);
            let prompt = report(estimate, 16_384, count);
            assert!(window.may_be_cut(prompt));
            let told = window.check(prompt, Some(loaded));
            assert_eq!(told.is_some(), is_cut, "{estimate} {loaded}: {told:?}");
            assert!(!window.may_be_cut(prompt), "one answer is enough");
            assert_eq!(window.check(prompt, None), None);
        }
        let window = OllamaWindow::new(None);
        for (estimate, count) in [(900, 10), (2048, 100), (9000, 9500)] {
            assert!(!window.may_be_cut(report(estimate, 16_384, count)));
        }
    }

    #[test]
    fn an_unreported_window_is_not_asked_for_again() {
        let (window, prompt) = (OllamaWindow::new(None), report(9000, 16_384, 4000));
        assert!(window.may_be_cut(prompt));
        window.mark_window_unreported();
        assert!(!window.may_be_cut(prompt));
    }
}
