//! Shows a model's answer as it streams, and tools while they run.

mod answer;
mod call_line;
mod markdown;
mod unreported_errors;

pub(crate) use answer::AnswerFormat;
#[cfg(feature = "voice")]
pub(crate) use call_line::SHOWN_ARGUMENTS;
pub(crate) use call_line::seconds;

use std::convert::Infallible;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_core::text::escape;
use toolgate_core::{Redactor, ToolOutcome};
use toolgate_models::{AnswerSource, ModelCall, ModelEvent, ModelListener};

use crate::clean::{TextCleaner, clean};
use crate::output;
use crate::spinner::{self, FRAME_INTERVAL, FRAMES, SPINNER_DELAY, Spinner, can_draw, clear_line};
use answer::{AnswerStream, AnswerStyle};
use call_line::{timed, title};
use unreported_errors::UnreportedErrors;

// How much of an error is shown. The model gets all of it.
const SHOWN_ERROR: usize = 300;
// The text is ours, but names in it may come from anywhere.
const SHOWN_NOTICE: usize = 1000;
// Only this many concurrent calls are drawn.
const MAX_DRAWN: usize = 12;

/// Draws on stderr, and streams words to stdout. Clones share the display.
#[derive(Clone)]
pub(crate) struct ChatDisplay(Arc<Mutex<DisplayState>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct DisplayOptions {
    pub(crate) streams: bool,
    pub(crate) format: AnswerFormat,
    pub(crate) progress: bool,
    pub(crate) thinking: bool,
}

struct DisplayState {
    options: DisplayOptions,
    redactor: Redactor,
    spinner: Spinner,
    waiting: Option<(String, Instant)>,
    running: Vec<DisplayedCall>,
    frame_count: usize,
    answer: AnswerStream,
    /// A matched sentence answers rather than a model, so the words are plain text.
    is_sentence: bool,
    is_thinking: bool,
    has_shown: bool,
    cleaner: TextCleaner,
    /// Held back while a question is asked, which must stay the last thing on the screen.
    held_back: Vec<String>,
    unreported: UnreportedErrors,
}

struct DisplayedCall {
    id: String,
    title: String,
    since: Instant,
}

impl ChatDisplay {
    pub(crate) fn new(options: DisplayOptions, redactor: Redactor, spinner: Spinner) -> Self {
        Self(Arc::new(Mutex::new(DisplayState {
            options,
            redactor,
            spinner,
            waiting: None,
            running: Vec::new(),
            frame_count: 0,
            answer: AnswerStream::default(),
            is_sentence: false,
            is_thinking: false,
            has_shown: false,
            cleaner: TextCleaner::default(),
            held_back: Vec::new(),
            unreported: UnreportedErrors::default(),
        })))
    }

    pub(crate) fn set_format(&self, format: AnswerFormat) {
        self.0.lock().options.format = format;
    }

    pub(crate) async fn animate(&self) -> Infallible {
        if !self.0.lock().options.progress || !can_draw() {
            return std::future::pending().await;
        }
        loop {
            self.0.lock().draw();
            tokio::time::sleep(FRAME_INTERVAL).await;
        }
    }

    pub(crate) fn finish_turn(&self) {
        let mut screen = self.0.lock();
        screen.waiting = None;
        screen.end_line();
        screen.is_sentence = false;
        screen.show_unreported("");
        clear_line();
        screen.print_held_back();
        // Calls that still run when a turn ends were cancelled with it.
        for stopped in std::mem::take(&mut screen.running) {
            if screen.options.progress {
                let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
                output::print_to_stderr(&format!("{red}✗{red:#} {} cancelled", stopped.title));
            }
        }
    }
}

impl ModelListener for ChatDisplay {
    fn event(&mut self, event: ModelEvent<'_>) {
        self.0.lock().event(&event);
    }
}

impl DisplayState {
    fn event(&mut self, event: &ModelEvent<'_>) {
        if !self.spinner.is_paused() {
            self.print_held_back();
        }
        match event {
            ModelEvent::Asking { .. } => {
                self.has_shown = false;
                self.wait_for("waiting for the model");
            }
            ModelEvent::Waiting { tool: Some(tool) } => {
                self.wait_for(&format!("waiting for the server of {}", escape(tool)));
            }
            ModelEvent::Waiting { tool: None } => self.wait_for("waiting for servers to start"),
            ModelEvent::Waited => self.stop_waiting(),
            ModelEvent::Text(text) => self.push_text(text),
            ModelEvent::Thinking(text) => self.push_thinking(text),
            ModelEvent::Void => {
                self.retract("the answer broke off; ignore the part above");
            }
            ModelEvent::WasThinking => {
                self.retract("that was the model's thinking; the answer follows");
            }
            ModelEvent::Retrying { error, after } => {
                let error = escape(&error.to_string());
                let after = seconds(*after);
                self.print_note(&format!("{error}; retrying in {after}"));
                self.wait_for("waiting to retry");
            }
            ModelEvent::Replied { .. } => self.stop_waiting(),
            ModelEvent::Calling { call, source, .. } => {
                self.stop_waiting();
                self.end_line();
                self.is_sentence |= *source == AnswerSource::Sentences;
                self.running.push(DisplayedCall {
                    id: call.id.clone(),
                    title: title(call, &self.redactor),
                    since: Instant::now(),
                });
            }
            ModelEvent::Called {
                call,
                source,
                outcome,
            } => self.finish_call(call, *source, outcome),
            ModelEvent::Notice(text) => {
                let text = self.redactor.line(text, SHOWN_NOTICE);
                match self.options.progress {
                    true => self.print_note(&text),
                    // Nobody would notice otherwise that the model didn't get everything.
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

    fn push_text(&mut self, text: &str) {
        if !self.options.streams {
            if let Some((title, _)) = &mut self.waiting {
                "the model is answering".clone_into(title);
            }
            return;
        }
        if self.is_thinking {
            self.end_line();
        }
        self.show_unreported(text);
        let text = self.cleaner.push(text);
        if let Some(block) = self.answer.push(&text, self.style()) {
            output::print_result(&block);
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
            false => self.options.format,
        })
    }

    fn push_thinking(&mut self, text: &str) {
        if !(self.options.thinking && self.options.progress) {
            if let Some((title, _)) = &mut self.waiting {
                "the model is thinking".clone_into(title);
            }
            return;
        }
        if self.answer.is_pending() {
            self.end_line();
        }
        let text = self.cleaner.push(text);
        let text = match self.is_thinking {
            true => text.as_str(),
            false => text.trim_start(),
        };
        if text.is_empty() {
            return;
        }
        self.stop_waiting();
        let dim = Style::new().dimmed();
        output::write_raw_stderr(&format!("{dim}{text}{dim:#}"));
        self.is_thinking = true;
        self.has_shown = true;
    }

    fn retract(&mut self, remark: &str) {
        if std::mem::take(&mut self.has_shown) {
            self.print_note(remark);
        }
    }

    fn finish_call(&mut self, call: &ModelCall, source: AnswerSource, outcome: &ToolOutcome) {
        let known = self
            .running
            .iter()
            .position(|running| running.id == call.id);
        let title = match known {
            Some(index) => self.running.remove(index).title,
            None => title(call, &self.redactor),
        };
        if !self.options.progress {
            return;
        }
        self.end_line();
        let (color, mark) = match outcome.is_success() {
            true => (AnsiColor::Green, '✓'),
            false => (AnsiColor::Red, '✗'),
        };
        let (style, dim) = (
            Style::new().fg_color(Some(color.into())),
            Style::new().dimmed(),
        );
        let error = outcome.error().and_then(|error| {
            let shown = format!("    {}", self.redactor.line(&error, SHOWN_ERROR));
            let is_kept = self.options.streams && self.unreported.hold_back(source, &error, &shown);
            (!is_kept).then(|| format!("\n{shown}"))
        });
        self.print_line(format!(
            "{style}{mark}{style:#} {title} {dim}{}{dim:#}{}",
            seconds(outcome.elapsed),
            error.unwrap_or_default()
        ));
    }

    fn show_unreported(&mut self, words: &str) {
        for error in self.unreported.take_unmentioned(words) {
            self.stop_waiting();
            self.print_line(error);
        }
    }

    fn print_note(&mut self, text: &str) {
        self.end_line();
        if self.options.progress {
            let dim = Style::new().dimmed();
            self.print_line(format!("{dim}· {text}{dim:#}"));
        } else {
            tracing::info!("{text}");
        }
    }

    fn print_line(&mut self, line: String) {
        self.held_back.push(line);
        if !self.spinner.is_paused() {
            self.print_held_back();
        }
    }

    fn print_held_back(&mut self) {
        for line in self.held_back.drain(..) {
            output::print_to_stderr(&line);
        }
    }

    fn end_line(&mut self) {
        self.cleaner = TextCleaner::default();
        let style = self.style();
        if let Some(rest) = self.answer.finish(style) {
            output::print_result(&rest);
        }
        if std::mem::take(&mut self.is_thinking) {
            output::write_raw_stderr("\n");
        }
    }

    fn draw(&mut self) {
        if self.spinner.is_paused() || self.is_thinking {
            return;
        }
        self.print_held_back();
        if self.answer.is_pending() {
            let preview = self.answer.preview(self.style());
            return spinner::draw_tail(&preview);
        }
        self.frame_count += 1;
        let frame = FRAMES[self.frame_count % FRAMES.len()];
        let width = spinner::width();
        let line = |title: &str, since: Instant| timed(frame, title, since.elapsed(), width);
        let mut lines: Vec<String> = self
            .running
            .iter()
            .take(MAX_DRAWN)
            .map(|running| line(&running.title, running.since))
            .collect();
        let more = self.running.len().saturating_sub(MAX_DRAWN);
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        if let Some((title, since)) = &self.waiting
            && since.elapsed() >= SPINNER_DELAY
        {
            lines.push(line(title, *since));
        }
        if !lines.is_empty() {
            spinner::draw(&lines);
        }
    }
}

pub(crate) fn format_answer(answer: &str, format: AnswerFormat) -> String {
    let answer = clean(answer);
    match output::stdout_is_terminal() {
        true => AnswerStyle::new(format).render(answer.trim()),
        false => answer.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests;
