//! What a person sees while a model answers: words as they come, and the tools as they run.

mod answer;
mod line;
mod markdown;
mod untold;

pub(crate) use answer::AnswerFormat;
#[cfg(feature = "voice")]
pub(crate) use line::SHOWN_ARGUMENTS;
pub(crate) use line::seconds;

use std::convert::Infallible;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolgate_core::{Redactor, ToolOutcome, escape};
use toolgate_models::{AnswerSource, Event, Listener, ModelCall};

use crate::clean::{Cleaner, clean};
use crate::say;
use crate::spinner::{self, FRAMES, PATIENCE, Spinner, TURN, can_draw, clear_line};
use answer::{AnswerStream, AnswerStyle};
use line::{timed, title};
use untold::Untold;

/// How much of an error is shown; the model gets all of it.
const SHOWN_ERROR: usize = 300;
/// Ours, but names in it may be anybody's.
const SHOWN_NOTICE: usize = 1000;
/// Of more calls at the same time only the first are drawn.
const MOST_DRAWN: usize = 12;

/// Draws on stderr, and streams words to stdout. Clones are the same display.
#[derive(Clone)]
pub(crate) struct Display(Arc<Mutex<Screen>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) streams: bool,
    pub(crate) format: AnswerFormat,
    pub(crate) progress: bool,
    pub(crate) thinking: bool,
}

struct Screen {
    manner: Manner,
    redactor: Redactor,
    /// Stays away while a question is asked, and so does all of this.
    spinner: Spinner,
    waiting: Option<(String, Instant)>,
    running: Vec<Running>,
    turns: usize,
    answer: AnswerStream,
    /// A sentence was matched, without a model: its words are plain.
    is_sentence: bool,
    is_thinking: bool,
    has_shown: bool,
    cleaner: Cleaner,
    /// What waits until a question is answered: the question must stay the last thing that is seen.
    unsaid: Vec<String>,
    untold: Untold,
}

struct Running {
    id: String,
    title: String,
    since: Instant,
}

impl Display {
    pub(crate) fn new(manner: Manner, redactor: Redactor, spinner: Spinner) -> Self {
        Self(Arc::new(Mutex::new(Screen {
            manner,
            redactor,
            spinner,
            waiting: None,
            running: Vec::new(),
            turns: 0,
            answer: AnswerStream::default(),
            is_sentence: false,
            is_thinking: false,
            has_shown: false,
            cleaner: Cleaner::default(),
            unsaid: Vec::new(),
            untold: Untold::default(),
        })))
    }

    pub(crate) fn set_format(&self, format: AnswerFormat) {
        self.screen().manner.format = format;
    }

    pub(crate) async fn animate(&self) -> Infallible {
        if !self.screen().manner.progress || !can_draw() {
            return std::future::pending().await;
        }
        loop {
            self.screen().draw();
            tokio::time::sleep(TURN).await;
        }
    }

    /// The turn is over, or was stopped: nothing is left half drawn.
    pub(crate) fn end(&self) {
        let mut screen = self.screen();
        screen.waiting = None;
        screen.end_line();
        screen.is_sentence = false;
        screen.show_untold("");
        clear_line();
        screen.catch_up();
        // What still runs when a turn ends was stopped with it.
        for stopped in std::mem::take(&mut screen.running) {
            if screen.manner.progress {
                let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
                say::line(&format!("{red}✗{red:#} {} cancelled", stopped.title));
            }
        }
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.0.lock()
    }
}

impl Listener for Display {
    fn event(&mut self, event: Event<'_>) {
        self.screen().event(&event);
    }
}

impl Screen {
    fn event(&mut self, event: &Event<'_>) {
        if !self.spinner.is_paused() {
            self.catch_up();
        }
        match event {
            Event::Asking { .. } => {
                self.has_shown = false;
                self.wait_for("waiting for the model");
            }
            Event::Waiting { tool: Some(tool) } => {
                self.wait_for(&format!("waiting for the server of {}", escape(tool)));
            }
            Event::Waiting { tool: None } => self.wait_for("waiting for servers that start"),
            Event::Waited => self.stop_waiting(),
            Event::Text(text) => self.text(text),
            Event::Thinking(text) => self.thinking(text),
            Event::Void => self.take_back("the answer broke off: what came of it does not count"),
            Event::WasThinking => self.take_back("that was thinking; the answer is still to come"),
            Event::Retrying { error, after } => {
                let error = escape(&error.to_string());
                let after = seconds(*after);
                self.remark(&format!("{error}; the model is asked again in {after}"));
                self.wait_for("waiting to ask again");
            }
            Event::Replied { .. } => self.stop_waiting(),
            Event::Calling { call, source, .. } => {
                self.stop_waiting();
                self.end_line();
                self.is_sentence |= *source == AnswerSource::Sentences;
                self.running.push(Running {
                    id: call.id.clone(),
                    title: title(call, &self.redactor),
                    since: Instant::now(),
                });
            }
            Event::Called {
                call,
                source,
                outcome,
            } => self.called(call, *source, outcome),
            Event::Notice(text) => {
                let text = self.redactor.line(text, SHOWN_NOTICE);
                match self.manner.progress {
                    true => self.remark(&text),
                    // Nobody would know that the model was not given all.
                    false => tracing::warn!("{text}"),
                }
            }
            _ => {}
        }
    }

    fn wait_for(&mut self, title: &str) {
        self.end_line();
        self.waiting = Some((title.to_owned(), Instant::now()));
    }

    fn stop_waiting(&mut self) {
        if self.waiting.take().is_some() {
            clear_line();
        }
    }

    fn text(&mut self, text: &str) {
        if !self.manner.streams {
            if let Some((title, _)) = &mut self.waiting {
                "the model answers".clone_into(title);
            }
            return;
        }
        if self.is_thinking {
            self.end_line();
        }
        self.show_untold(text);
        let text = self.cleaner.push(text);
        if let Some(block) = self.answer.push(&text, self.style()) {
            say::result(&block);
            self.has_shown = true;
        }
        if self.answer.is_pending() {
            self.stop_waiting();
            self.has_shown = true;
        }
    }

    fn style(&self) -> AnswerStyle {
        AnswerStyle::new(match self.is_sentence {
            true => AnswerFormat::Plain,
            false => self.manner.format,
        })
    }

    fn thinking(&mut self, text: &str) {
        if !(self.manner.thinking && self.manner.progress) {
            if let Some((title, _)) = &mut self.waiting {
                "the model thinks".clone_into(title);
            }
            return;
        }
        if self.answer.is_pending() {
            self.end_line();
        }
        let text = self.cleaner.push(text);
        let text = match self.is_thinking {
            false => text.trim_start(),
            true => text.as_str(),
        };
        if text.is_empty() {
            return;
        }
        self.stop_waiting();
        let dim = Style::new().dimmed();
        say::aside(&format!("{dim}{text}{dim:#}"));
        self.is_thinking = true;
        self.has_shown = true;
    }

    /// A remark on words that do not count; of those that nobody saw there is nothing to say.
    fn take_back(&mut self, remark: &str) {
        if std::mem::take(&mut self.has_shown) {
            self.remark(remark);
        }
    }

    fn called(&mut self, call: &ModelCall, source: AnswerSource, outcome: &ToolOutcome) {
        let known = self
            .running
            .iter()
            .position(|running| running.id == call.id);
        let title = match known {
            Some(index) => self.running.remove(index).title,
            None => title(call, &self.redactor),
        };
        if !self.manner.progress {
            return;
        }
        self.end_line();
        let (colour, mark) = match outcome.is_success() {
            true => (AnsiColor::Green, '✓'),
            false => (AnsiColor::Red, '✗'),
        };
        let (style, dim) = (
            Style::new().fg_color(Some(colour.into())),
            Style::new().dimmed(),
        );
        let error = outcome.error().and_then(|error| {
            let shown = format!("    {}", self.redactor.line(&error, SHOWN_ERROR));
            let is_kept = self.manner.streams && self.untold.keep(source, &error, &shown);
            (!is_kept).then(|| format!("\n{shown}"))
        });
        self.say(format!(
            "{style}{mark}{style:#} {title} {dim}{}{dim:#}{}",
            seconds(outcome.elapsed),
            error.unwrap_or_default()
        ));
    }

    /// What failed and is not in these words, before they come.
    fn show_untold(&mut self, words: &str) {
        for error in self.untold.beside(words) {
            self.stop_waiting();
            self.say(error);
        }
    }

    fn remark(&mut self, text: &str) {
        self.end_line();
        if self.manner.progress {
            let dim = Style::new().dimmed();
            self.say(format!("{dim}· {text}{dim:#}"));
        } else {
            tracing::info!("{text}");
        }
    }

    fn say(&mut self, line: String) {
        self.unsaid.push(line);
        if !self.spinner.is_paused() {
            self.catch_up();
        }
    }

    fn catch_up(&mut self) {
        for line in self.unsaid.drain(..) {
            say::line(&line);
        }
    }

    fn end_line(&mut self) {
        self.cleaner = Cleaner::default();
        let style = self.style();
        if let Some(rest) = self.answer.finish(style) {
            say::result(&rest);
        }
        if std::mem::take(&mut self.is_thinking) {
            say::aside("\n");
        }
    }

    fn draw(&mut self) {
        if self.spinner.is_paused() || self.is_thinking {
            return;
        }
        self.catch_up();
        if self.answer.is_pending() {
            let preview = self.answer.preview(self.style());
            return spinner::draw_end(&preview);
        }
        self.turns += 1;
        let frame = FRAMES[self.turns % FRAMES.len()];
        let width = spinner::width();
        let line = |title: &str, since: Instant| timed(frame, title, since.elapsed(), width);
        let mut lines: Vec<String> = self
            .running
            .iter()
            .take(MOST_DRAWN)
            .map(|running| line(&running.title, running.since))
            .collect();
        let more = self.running.len().saturating_sub(MOST_DRAWN);
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        if let Some((title, since)) = &self.waiting
            && since.elapsed() >= PATIENCE
        {
            lines.push(line(title, *since));
        }
        if !lines.is_empty() {
            spinner::draw(&lines);
        }
    }
}

/// An answer as stdout wants it: fitted to a terminal, as it is for everybody else.
pub(crate) fn whole(answer: &str, format: AnswerFormat) -> String {
    let answer = clean(answer);
    match say::is_watched() {
        true => AnswerStyle::new(format).shown(answer.trim()),
        false => answer.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests;
