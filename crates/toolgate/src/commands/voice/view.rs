//! Shows what the voice gateway does: live lines at a terminal, log records elsewhere, and
//! the answers on stdout.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::text::escape;
use toolgate_core::{CallId, Redactor, ToolOutcome};
use toolgate_journal::{TurnOutcome, TurnStages, VoiceTurn};
use toolgate_models::ConnectedModel;
use toolgate_voice::{DropReason, EngineRole, VoiceEvent, VoiceObserver};

use super::calls::PendingCalls;
use super::canvas::{CanvasPainter, VoiceCanvas, VoiceOutput};
use super::live_line::LiveLine;
use crate::clean::clean;
use crate::commands::rendered;
use crate::display::{SHOWN_ARGUMENTS, seconds};
use crate::spinner::Spinner;
use crate::wanted_model;
use crate::wrap::pluralize;

// The source of requests that come from files.
const FILES: &str = "wav";
// How much is shown of an error or an engine's message.
const SHOWN_ERROR: usize = 300;

#[derive(Debug, Clone, Copy)]
pub(super) struct ViewOptions {
    pub(super) is_interactive: bool,
    pub(super) draws: bool,
    pub(super) json: bool,
    /// What starts a request, such as a wake word.
    pub(super) waits_for: &'static str,
    pub(super) keys: bool,
}

/// Clones share the view.
#[derive(Clone)]
pub(super) struct VoiceView(Arc<ViewState>);

struct ViewState {
    options: ViewOptions,
    redactor: Redactor,
    canvas: VoiceCanvas,
    stop_after_one: Option<CancellationToken>,
    calls: Mutex<PendingCalls>,
    lost: Mutex<HashSet<String>>,
    is_ready: AtomicBool,
    has_heard: AtomicBool,
    failure: OnceLock<String>,
    file: Mutex<Option<String>>,
}

impl VoiceView {
    pub(super) fn new(
        options: ViewOptions,
        redactor: Redactor,
        spinner: Spinner,
        stop_after_one: Option<CancellationToken>,
    ) -> Self {
        let line = LiveLine::new(options.waits_for, options.keys, Instant::now());
        Self(Arc::new(ViewState {
            options,
            redactor,
            canvas: VoiceCanvas::new(line, options.draws, spinner),
            stop_after_one,
            calls: Mutex::default(),
            lost: Mutex::default(),
            is_ready: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            failure: OnceLock::new(),
            file: Mutex::default(),
        }))
    }

    pub(super) fn has_heard(&self) -> bool {
        self.0.has_heard.load(Ordering::Relaxed)
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    pub(super) fn paint(&self) -> CanvasPainter {
        self.0.canvas.paint()
    }

    fn push(&self, output: VoiceOutput) {
        self.0.canvas.push(output);
    }

    fn print_or_log(&self, line: impl FnOnce() -> String, log: impl FnOnce() -> String) {
        self.push(match self.0.options.is_interactive {
            true => VoiceOutput::Line(line()),
            false => VoiceOutput::Info(log()),
        });
    }

    pub(super) fn introduce(&self, chosen: &ConnectedModel) {
        let text = format!("{}: {}", wanted_model::describe_model(chosen), chosen.why);
        let dim = Style::new().dimmed();
        self.print_or_log(|| format!("{dim}{text}{dim:#}"), || text.clone());
    }

    // Prints a line for a person only, because the gateway logs the same.
    fn print_line(&self, line: impl FnOnce() -> String) {
        if self.0.options.is_interactive {
            self.push(VoiceOutput::Line(line()));
        }
    }

    fn on_phase(&self, name: &str, took: Duration, problem: Option<&str>) {
        if problem.is_some() && self.0.lost.lock().contains(name) {
            return;
        }
        self.print_line(|| {
            let (mark, dim) = (check_mark(problem.is_none()), Style::new().dimmed());
            let problem = self.indented(problem);
            let (name, took) = (escape(name), seconds(took));
            format!("{mark} {name} {dim}{took}{dim:#}{problem}")
        });
    }

    fn indented(&self, problem: Option<&str>) -> String {
        let problem = problem.map(|text| self.0.redactor.line(text, SHOWN_ERROR));
        problem.map_or_else(String::new, |text| format!("\n    {text}"))
    }

    /// MCP servers were lost or came back. During the start, `on_ready` reports that.
    fn on_tools(&self, missing: Option<&str>) {
        if self.0.is_ready.load(Ordering::Relaxed) {
            self.print_line(|| match missing {
                None => format!("{} all MCP servers are back", check_mark(true)),
                Some(what) => {
                    let what = self.0.redactor.line(what, SHOWN_ERROR);
                    format!("{} {what} can't be reached", check_mark(false))
                }
            });
        }
    }

    fn on_ready(&self, degraded: Option<&str>) {
        self.0.is_ready.store(true, Ordering::Relaxed);
        let bold = Style::new().bold();
        self.print_line(|| match degraded {
            None => format!("{bold}Ready.{bold:#}"),
            Some(words) => {
                let words = self.0.redactor.line(words, SHOWN_ERROR);
                let help = match self.0.lost.lock().is_empty() {
                    true => "",
                    false => "\n'toolgate doctor' says how to get what is missing.",
                };
                format!("{bold}Ready{bold:#}, with limits: {words}{help}")
            }
        });
    }

    fn on_heard(&self, text: &str) {
        self.0.has_heard.store(true, Ordering::Relaxed);
        let text = escape(text.trim());
        let style = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        self.0.canvas.line(LiveLine::clear_words);
        self.print_or_log(
            || format!("{style}›{style:#} {text}"),
            || format!("heard: {text}"),
        );
    }

    // Files are answered one after the other, so one name is enough.
    fn on_file(&self, file: &Path) {
        let file = file.to_string_lossy().into_owned();
        *self.0.file.lock() = Some(file);
    }

    fn record(&self, source: &str, mut record: Value) {
        let file = self.0.file.lock();
        // Text requests don't come from a file.
        if let Some(file) = file.as_ref().filter(|_| source == FILES) {
            record["file"] = json!(file);
        }
        drop(file);
        self.push(VoiceOutput::Record(rendered(&record)));
    }

    fn on_dropped(&self, source: &str, heard: &str, why: &str) {
        if self.0.options.json {
            let heard = heard.trim();
            let record =
                json!({ "source": source, "heard": heard, "outcome": "dropped", "reason": why });
            self.record(source, record);
        }
        let dim = Style::new().dimmed();
        let is_warned = why == DropReason::QueueFull.to_string();
        let why = escape(why);
        let shown = || format!("{dim}· {why}{dim:#}");
        match is_warned {
            // The gateway has logged a warning already.
            true => self.print_line(shown),
            false => self.print_or_log(shown, || format!("not answered: {why}")),
        }
    }

    fn on_calling(&self, id: CallId, name: &str, arguments: &str) {
        let shown = match arguments {
            "" | "{}" => escape(name),
            _ => {
                let arguments = self.0.redactor.line(arguments, SHOWN_ARGUMENTS);
                format!("{} {arguments}", escape(name))
            }
        };
        self.0.calls.lock().start(id, name, shown);
        self.0.canvas.line(LiveLine::keep_words);
    }

    // Not logged, because each call is in the log already.
    fn on_called(&self, outcome: &ToolOutcome) {
        let title = self.0.calls.lock().finish(outcome);
        self.print_line(|| {
            let (mark, dim) = (check_mark(outcome.is_success()), Style::new().dimmed());
            let took = seconds(outcome.elapsed);
            let error = self.indented(outcome.error().as_deref());
            format!("{mark} {title} {dim}{took}{dim:#}{error}")
        });
    }

    fn on_turn(&self, turn: &VoiceTurn) {
        self.0.canvas.line(LiveLine::clear_words);
        let calls = self.0.calls.lock().take(&turn.calls);
        match self.0.options.json {
            true => {
                let mut record = json!(turn);
                record["calls"] = calls;
                self.record(&turn.source, record);
            }
            false => self.push(VoiceOutput::Result(clean(&turn.answer).trim().to_owned())),
        }
        let cost = cost(turn.outcome, &turn.stages, turn.calls.len());
        let dim = Style::new().dimmed();
        let error = turn.error.as_deref().map(|error| {
            let error = self.0.redactor.line(error, SHOWN_ERROR);
            self.0.failure.get_or_init(|| error.clone());
            format!("{} {error}\n", check_mark(false))
        });
        let error = error.unwrap_or_default();
        self.print_or_log(|| format!("{error}{dim}{cost}{dim:#}\n"), || cost.clone());
        if let Some(stop_after_one) = &self.0.stop_after_one {
            stop_after_one.cancel();
        }
    }

    fn on_lost(&self, role: EngineRole, why: &str) {
        self.show_microphone(role, false);
        self.0.lost.lock().insert(role.to_string());
        self.print_line(|| {
            let why = self.0.redactor.line(why, SHOWN_ERROR);
            format!("{} {role} is not available: {why}", check_mark(false))
        });
    }

    // Without a microphone, the screen must not say that the gateway is listening.
    fn show_microphone(&self, role: EngineRole, is_available: bool) {
        if role == EngineRole::Microphone {
            self.0
                .canvas
                .line(|line| line.set_microphone_lost(!is_available));
        }
    }

    fn on_back(&self, role: EngineRole) {
        self.show_microphone(role, true);
        self.0.lost.lock().remove(&role.to_string());
        self.print_line(|| format!("{} {role} is back", check_mark(true)));
    }
}

impl VoiceObserver for VoiceView {
    fn event(&self, event: VoiceEvent<'_>) {
        match event {
            VoiceEvent::Phase {
                name,
                took,
                problem,
            } => self.on_phase(name, took, problem),
            VoiceEvent::Ready { degraded } => self.on_ready(degraded),
            VoiceEvent::Tools { missing } => self.on_tools(missing),
            VoiceEvent::State(state) => {
                self.0
                    .canvas
                    .line(|line| line.set_state(state, Instant::now()));
            }
            VoiceEvent::Level(level) => self.0.canvas.line(|line| line.push_level(level)),
            VoiceEvent::Heard { text, .. } => self.on_heard(text),
            VoiceEvent::File(file) => self.on_file(file),
            VoiceEvent::Dropped { source, heard, why } => self.on_dropped(source, heard, why),
            VoiceEvent::Calling {
                id,
                name,
                arguments,
            } => self.on_calling(id, name, arguments),
            VoiceEvent::Called(outcome) => self.on_called(outcome),
            VoiceEvent::Words(words) => self.0.canvas.line(|line| line.push_words(words)),
            VoiceEvent::TakenBack => self.0.canvas.line(LiveLine::retract_words),
            VoiceEvent::Turn(turn) => self.on_turn(turn),
            VoiceEvent::Lost { role, why } => self.on_lost(role, why),
            VoiceEvent::Back(role) => self.on_back(role),
            _ => {}
        }
    }
}

fn check_mark(is_good: bool) -> String {
    let (color, mark) = match is_good {
        true => (AnsiColor::Green, '✓'),
        false => (AnsiColor::Red, '✗'),
    };
    let style = Style::new().fg_color(Some(color.into()));
    format!("{style}{mark}{style:#}")
}

/// The outcome, unless it is a plain answer, and where the time went: `transcribed in 620 ms ·
/// first word after 12 ms · sound after 80 ms · 1 call`.
fn cost(outcome: TurnOutcome, stages: &TurnStages, calls: usize) -> String {
    let between = |from: Option<f64>, to: Option<f64>| Some((to? - from?).max(0.0));
    let asked = stages.transcribed_ms.or(stages.speech_ended_ms);
    let parts = [
        (
            "transcribed in",
            between(stages.speech_ended_ms, stages.transcribed_ms),
        ),
        ("first word after", between(asked, stages.first_token_ms)),
        (
            "sound after",
            between(stages.first_token_ms, stages.first_audio_ms),
        ),
    ];
    let times = parts.into_iter().filter_map(|(name, millis)| {
        let took = Duration::try_from_secs_f64(millis? / 1000.0).ok()?;
        Some(format!("{name} {}", seconds(took)))
    });
    let calls = (calls > 0).then(|| pluralize(calls, "call"));
    let outcome = match outcome {
        TurnOutcome::Interrupted => Some("interrupted".to_owned()),
        TurnOutcome::Failed => Some("failed".to_owned()),
        _ => None,
    };
    let parts: Vec<String> = outcome.into_iter().chain(times).chain(calls).collect();
    match parts.is_empty() {
        true => "answered".to_owned(),
        false => parts.join(" · "),
    }
}

#[cfg(test)]
mod tests;
