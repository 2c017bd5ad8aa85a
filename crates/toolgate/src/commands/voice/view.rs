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
use toolgate_core::{CallId, Redactor, ToolOutcome, escape};
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
use crate::wrap::counted;

// The source of requests that come from files.
const FILES: &str = "wav";
// How much is shown of an error or an engine's message.
const SHOWN_ERROR: usize = 300;

#[derive(Debug, Clone, Copy)]
pub(super) struct ViewOptions {
    pub(super) followed: bool,
    pub(super) drawn: bool,
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
    enough: Option<CancellationToken>,
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
        enough: Option<CancellationToken>,
    ) -> Self {
        let line = LiveLine::new(options.waits_for, options.keys, Instant::now());
        Self(Arc::new(ViewState {
            options,
            redactor,
            canvas: VoiceCanvas::new(line, options.drawn, spinner),
            enough,
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

    fn say(&self, said: VoiceOutput) {
        self.0.canvas.say(said);
    }

    fn remark(&self, line: impl FnOnce() -> String, log: impl FnOnce() -> String) {
        self.say(match self.0.options.followed {
            true => VoiceOutput::Line(line()),
            false => VoiceOutput::Info(log()),
        });
    }

    pub(super) fn introduce(&self, chosen: &ConnectedModel) {
        let text = format!("{}: {}", wanted_model::described(chosen), chosen.why);
        let dim = Style::new().dimmed();
        self.remark(|| format!("{dim}{text}{dim:#}"), || text.clone());
    }

    // Prints a line for a person only, because the gateway logs the same.
    fn show(&self, line: impl FnOnce() -> String) {
        if self.0.options.followed {
            self.say(VoiceOutput::Line(line()));
        }
    }

    fn phase(&self, name: &str, took: Duration, problem: Option<&str>) {
        if problem.is_some() && self.0.lost.lock().contains(name) {
            return;
        }
        self.show(|| {
            let (mark, dim) = (mark(problem.is_none()), Style::new().dimmed());
            let problem = self.below(problem);
            let (name, took) = (escape(name), seconds(took));
            format!("{mark} {name} {dim}{took}{dim:#}{problem}")
        });
    }

    fn below(&self, problem: Option<&str>) -> String {
        let problem = problem.map(|text| self.0.redactor.line(text, SHOWN_ERROR));
        problem.map_or_else(String::new, |text| format!("\n    {text}"))
    }

    /// MCP servers went away or came back. At the start that is reported with everything else.
    fn tools(&self, missing: Option<&str>) {
        if self.0.is_ready.load(Ordering::Relaxed) {
            self.show(|| match missing {
                None => format!("{} all MCP servers are back", mark(true)),
                Some(what) => {
                    let what = self.0.redactor.line(what, SHOWN_ERROR);
                    format!("{} {what} can't be reached", mark(false))
                }
            });
        }
    }

    fn ready(&self, degraded: Option<&str>) {
        self.0.is_ready.store(true, Ordering::Relaxed);
        let bold = Style::new().bold();
        self.show(|| match degraded {
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

    fn heard(&self, text: &str) {
        self.0.has_heard.store(true, Ordering::Relaxed);
        let text = escape(text.trim());
        let style = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        self.0.canvas.line(LiveLine::forget_words);
        self.remark(
            || format!("{style}›{style:#} {text}"),
            || format!("heard: {text}"),
        );
    }

    // Files are answered one after the other, so one name is enough.
    fn file(&self, file: &Path) {
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
        self.say(VoiceOutput::Record(rendered(&record)));
    }

    fn dropped(&self, source: &str, heard: &str, why: &str) {
        if self.0.options.json {
            let heard = heard.trim();
            let record =
                json!({ "source": source, "heard": heard, "outcome": "dropped", "reason": why });
            self.record(source, record);
        }
        let dim = Style::new().dimmed();
        let is_warned = why == DropReason::Overrun.to_string();
        let why = escape(why);
        let shown = || format!("{dim}· {why}{dim:#}");
        match is_warned {
            // The gateway has logged a warning already.
            true => self.show(shown),
            false => self.remark(shown, || format!("not answered: {why}")),
        }
    }

    fn calling(&self, id: CallId, name: &str, arguments: &str) {
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
    fn called(&self, outcome: &ToolOutcome) {
        let title = self.0.calls.lock().finish(outcome);
        self.show(|| {
            let (mark, dim) = (mark(outcome.is_success()), Style::new().dimmed());
            let took = seconds(outcome.elapsed);
            let error = self.below(outcome.error().as_deref());
            format!("{mark} {title} {dim}{took}{dim:#}{error}")
        });
    }

    fn turn(&self, turn: &VoiceTurn) {
        self.0.canvas.line(LiveLine::forget_words);
        let calls = self.0.calls.lock().take(&turn.calls);
        match self.0.options.json {
            true => {
                let mut record = json!(turn);
                record["calls"] = calls;
                self.record(&turn.source, record);
            }
            false => self.say(VoiceOutput::Result(clean(&turn.answer).trim().to_owned())),
        }
        let cost = cost(turn.outcome, &turn.stages, turn.calls.len());
        let dim = Style::new().dimmed();
        let error = turn.error.as_deref().map(|error| {
            let error = self.0.redactor.line(error, SHOWN_ERROR);
            self.0.failure.get_or_init(|| error.clone());
            format!("{} {error}\n", mark(false))
        });
        let error = error.unwrap_or_default();
        self.remark(|| format!("{error}{dim}{cost}{dim:#}\n"), || cost.clone());
        if let Some(enough) = &self.0.enough {
            enough.cancel();
        }
    }

    fn lost(&self, role: EngineRole, why: &str) {
        self.hears(role, false);
        self.0.lost.lock().insert(role.to_string());
        self.show(|| {
            let why = self.0.redactor.line(why, SHOWN_ERROR);
            format!("{} {role} is not available: {why}", mark(false))
        });
    }

    // Without a microphone the screen must not look as if somebody listened.
    fn hears(&self, role: EngineRole, is_there: bool) {
        if role == EngineRole::Microphone {
            self.0.canvas.line(|line| line.set_deaf(!is_there));
        }
    }

    fn back(&self, role: EngineRole) {
        self.hears(role, true);
        self.0.lost.lock().remove(&role.to_string());
        self.show(|| format!("{} {role} is back", mark(true)));
    }
}

impl VoiceObserver for VoiceView {
    fn event(&self, event: VoiceEvent<'_>) {
        match event {
            VoiceEvent::Phase {
                name,
                took,
                problem,
            } => self.phase(name, took, problem),
            VoiceEvent::Ready { degraded } => self.ready(degraded),
            VoiceEvent::Tools { missing } => self.tools(missing),
            VoiceEvent::State(state) => {
                self.0.canvas.line(|line| line.state(state, Instant::now()));
            }
            VoiceEvent::Level(level) => self.0.canvas.line(|line| line.level(level)),
            VoiceEvent::Heard { text, .. } => self.heard(text),
            VoiceEvent::File(file) => self.file(file),
            VoiceEvent::Dropped { source, heard, why } => self.dropped(source, heard, why),
            VoiceEvent::Calling {
                id,
                name,
                arguments,
            } => self.calling(id, name, arguments),
            VoiceEvent::Called(outcome) => self.called(outcome),
            VoiceEvent::Words(words) => self.0.canvas.line(|line| line.words(words)),
            VoiceEvent::TakenBack => self.0.canvas.line(LiveLine::take_back),
            VoiceEvent::Turn(turn) => self.turn(turn),
            VoiceEvent::Lost { role, why } => self.lost(role, why),
            VoiceEvent::Back(role) => self.back(role),
            _ => {}
        }
    }
}

fn mark(is_good: bool) -> String {
    let (colour, mark) = match is_good {
        true => (AnsiColor::Green, '✓'),
        false => (AnsiColor::Red, '✗'),
    };
    let style = Style::new().fg_color(Some(colour.into()));
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
    let calls = (calls > 0).then(|| counted(calls, "call"));
    let outcome = match outcome {
        TurnOutcome::Interrupted => Some("interrupted".to_owned()),
        TurnOutcome::Failed => Some("failed".to_owned()),
        _ => None,
    };
    let told: Vec<String> = outcome.into_iter().chain(times).chain(calls).collect();
    match told.is_empty() {
        true => "answered".to_owned(),
        false => told.join(" · "),
    }
}

#[cfg(test)]
mod tests;
