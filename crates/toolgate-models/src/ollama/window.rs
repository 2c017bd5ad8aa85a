//! How large a window the server is asked for, and whether it kept to it.
//!
//! A server that is not asked uses its own size, often 4096 tokens, and cuts what is longer from the front: the tools go
//! first, without a word. A server that is asked for another size loads the model anew, which takes seconds. So the size is
//! asked for with every request, in few steps, and never gets smaller again.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The smallest window: room for a few tools and an answer.
const LEAST: usize = 8192;
/// The largest window that is asked for without being told to: memory grows with it, by gigabytes in models of usual size.
const MOST: usize = 32_768;

#[derive(Debug)]
pub(super) struct Window {
    /// As configured: then it is exactly that.
    fixed: Option<usize>,
    /// What the model was trained for, once that is known; else 0.
    of_model: AtomicUsize,
    asked: AtomicUsize,
    reading: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    /// Of the request before, which the server may keep in its cache.
    before: usize,
    /// A prompt of this many tokens was not cut, as the server said.
    safe: usize,
    /// It does not tell the window that it holds the model with.
    silent: bool,
    warned: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    /// About how many tokens the prompt has.
    pub(super) estimate: usize,
    pub(super) window: usize,
    pub(super) read: u64,
}

impl Window {
    pub(super) fn new(fixed: Option<usize>) -> Self {
        Self {
            fixed,
            of_model: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            reading: Mutex::default(),
        }
    }

    pub(super) fn learn(&self, of_model: Option<usize>) {
        self.of_model
            .store(of_model.unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> usize {
        let of_model = match self.of_model.load(Ordering::Relaxed) {
            0 => MOST,
            known => known,
        };
        self.fixed.unwrap_or(of_model.min(MOST))
    }

    /// What to ask for, so that a prompt and its answer have room: 8192 tokens or twice as much and so on, and not less than
    /// before.
    pub(super) fn fit(&self, prompt: usize, answer: usize) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let step = prompt.saturating_add(answer).clamp(LEAST, MOST);
        let wanted = step.next_power_of_two().min(self.most());
        self.asked.fetch_max(wanted, Ordering::Relaxed).max(wanted)
    }

    /// True if the server read less than was sent, as far as that can be told: then it is worth asking which window it
    /// holds the model with, unless it did not tell before. No server has one so small that a short prompt is cut.
    pub(super) fn is_doubtful(&self, Read { estimate, read, .. }: Read) -> bool {
        const SHORT: usize = 2048;
        let reading = self.reading.lock();
        let read = usize::try_from(read).unwrap_or(usize::MAX);
        let may_tell = !reading.silent && !reading.warned;
        may_tell && read < estimate && estimate > SHORT.max(reading.safe)
    }

    /// The server was asked which window it holds the model with, and did not tell.
    pub(super) fn not_told(&self) {
        let mut reading = self.reading.lock();
        reading.silent = true;
    }

    /// Compares what the server says it read with what was sent; a sentence for the person where it was cut. `held` is the
    /// window that the server holds the model with, where it told: then there is nothing to guess.
    ///
    /// The estimate is no count, so where the server tells nothing only a gap of more than half is one, or a smaller one where
    /// what was read fills a window of a usual size. Some versions count
    /// only what their cache does not hold: what they read for the request before is given to them. The first request of a
    /// program may still meet a cache that another one filled, and the sentence says so. It is said once.
    pub(super) fn check(&self, prompt: Read, held: Option<usize>) -> Option<String> {
        const SMALL: usize = 1024;
        let Read {
            estimate,
            window,
            read,
        } = prompt;
        let read = usize::try_from(read).unwrap_or(usize::MAX);
        let mut reading = self.reading.lock();
        let with_cache = read.saturating_add(reading.before);
        reading.before = with_cache.min(estimate).max(read);
        let missing = estimate.saturating_sub(with_cache);
        let gap = match fills_a_window(read, window) {
            true => estimate / 5,
            false => estimate / 5 * 3,
        };
        let seems_cut = read > 0 && missing > SMALL.max(gap);
        let held = held.map(|held| held.min(window));
        reading.safe = reading.safe.max(held.unwrap_or(0));
        let cut = match held {
            Some(held) => held < estimate.min(window),
            None => seems_cut && estimate > reading.safe,
        };
        if !(cut || estimate > window) || std::mem::replace(&mut reading.warned, true) {
            return None;
        }
        if !cut {
            return Some(format!(
                "The prompt takes about {estimate} tokens and the model's window is {window}: Ollama may cut its beginning, \
                 where the tools are. Offer fewer tools (model.maxTools in the configuration), or raise model.contextTokens if the model \
                 can hold more."
            ));
        }
        if let Some(held) = held {
            return Some(format!(
                "Ollama holds the model with a window of {held} tokens, though it was asked for {window}: of about {estimate} \
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

/// True of 4096 tokens, or a few less, where more were asked for.
fn fills_a_window(read: usize, asked: usize) -> bool {
    let full = read.checked_next_power_of_two().unwrap_or(usize::MAX);
    full < asked && full - read <= full / 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(estimate: usize, window: usize, read: u64) -> Read {
        Read {
            estimate,
            window,
            read,
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
            assert_eq!(Window::new(None).fit(prompt, answer), expected, "{prompt}");
        }
    }

    #[test]
    fn a_window_never_shrinks_so_that_the_model_stays_loaded() {
        let window = Window::new(None);
        let sizes = [1000, 9000, 1000].map(|prompt| window.fit(prompt, 4096));
        assert_eq!(sizes, [8192, 16_384, 16_384]);
    }

    #[test]
    fn a_configured_window_is_exactly_that() {
        let window = Window::new(Some(3000));
        window.learn(Some(2048));
        assert_eq!(
            [window.fit(10, 10), window.fit(90_000, 10), window.most()],
            [3000; 3]
        );
    }

    #[test]
    fn a_window_is_not_larger_than_the_model() {
        for (of_model, most) in [
            (Some(4096), 4096),
            (Some(20_000), 20_000),
            (Some(262_144), 32_768),
            (None, 32_768),
        ] {
            let window = Window::new(None);
            window.learn(of_model);
            assert_eq!((window.most(), window.fit(90_000, 4096)), (most, most));
        }
    }

    #[test]
    fn a_prompt_that_was_cut_is_told_once_with_numbers() {
        let window = Window::new(None);
        let told = window.check(read(15_700, 16_384, 2048), None).unwrap();
        for part in [
            "only 2048 of about 15700",
            "window of 16384",
            "OLLAMA_CONTEXT_LENGTH=16384",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(window.check(read(15_900, 16_384, 2048), None), None);
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
            let told = Window::new(None).check(read(estimate, window, count), None);
            assert_eq!(told.is_some(), is_cut, "{estimate} {count}: {told:?}");
        }
    }

    #[test]
    fn a_prompt_larger_than_the_window_is_told_once_whatever_was_read() {
        for count in [0, 4096, 9000] {
            let window = Window::new(Some(4096));
            let told = window.check(read(9000, 4096, count), None).unwrap();
            assert!(
                told.contains("about 9000") && told.contains("4096"),
                "{told}"
            );
            assert_eq!(window.check(read(9000, 4096, count), None), None);
        }
    }

    #[test]
    fn a_bad_guess_and_a_cache_are_no_cut() {
        let rounds: [&[(usize, u64)]; 5] = [
            &[(15_700, 9000)],
            &[(900, 100)],
            &[(15_700, 0)],
            &[(15_700, 11_000), (16_000, 200), (16_300, 300)],
            &[(3000, 2800), (15_700, 10_000), (15_800, 20)],
        ];
        for rounds in rounds {
            let window = Window::new(None);
            for (estimate, count) in rounds {
                assert_eq!(
                    window.check(read(*estimate, 16_384, *count), None),
                    None,
                    "{estimate} {count}"
                );
            }
        }
    }

    #[test]
    fn what_the_server_says_of_its_window_goes_before_any_guess() {
        for (estimate, count, held, is_cut) in [
            (9300, 4096, 4096, true),
            (15_700, 2048, 16_384, false),
            (15_700, 2048, 32_768, false),
            (3000, 2500, 4096, false),
        ] {
            let window = Window::new(None);
            let prompt = read(estimate, 16_384, count);
            assert!(window.is_doubtful(prompt));
            let told = window.check(prompt, Some(held));
            assert_eq!(told.is_some(), is_cut, "{estimate} {held}: {told:?}");
            assert!(!window.is_doubtful(prompt), "one answer is enough");
            assert_eq!(window.check(prompt, None), None);
        }
        let window = Window::new(None);
        for (estimate, count) in [(900, 10), (2048, 100), (9000, 9500)] {
            assert!(!window.is_doubtful(read(estimate, 16_384, count)));
        }
    }

    #[test]
    fn a_server_that_does_not_tell_is_not_asked_with_every_question() {
        let (window, prompt) = (Window::new(None), read(9000, 16_384, 4000));
        assert!(window.is_doubtful(prompt));
        window.not_told();
        assert!(!window.is_doubtful(prompt));
    }
}
