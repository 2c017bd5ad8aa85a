//! What can be seen of the gateway: live lines for a person at a terminal, records of the log for everybody else, and the answers
//! on stdout.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{CallId, Redactor, ToolOutcome, escape};
use toolgate_journal::{TurnOutcome, TurnStages, VoiceTurn};
use toolgate_models::Chosen;
use toolgate_voice::{Event, Reason, Role, Watcher};

use super::calls::Calls;
use super::line::Line;
use super::paint::{Canvas, Painter, Said};
use crate::clean::clean;
use crate::commands::rendered;
use crate::display::{SHOWN_ARGUMENTS, seconds};
use crate::spinner::Spinner;
use crate::wanted_model;

/// What is heard in files comes from.
const FILES: &str = "wav";
/// How much of an error, or of what an engine says, is shown.
const SHOWN_ERROR: usize = 300;

#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) followed: bool,
    pub(super) drawn: bool,
    pub(super) json: bool,
    /// What begins a request, where not everything does.
    pub(super) waits_for: &'static str,
    pub(super) keys: bool,
}

/// Sees what happens. Clones are the same view.
#[derive(Clone)]
pub(super) struct View(Arc<Shared>);

struct Shared {
    manner: Manner,
    redactor: Redactor,
    canvas: Canvas,
    /// Cancelled once there was a turn, if one is enough.
    enough: Option<CancellationToken>,
    calls: Mutex<Calls>,
    /// Engines that are known to be away, by name.
    lost: Mutex<HashSet<String>>,
    is_ready: AtomicBool,
    has_heard: AtomicBool,
    /// Why the first turn failed that did.
    failure: OnceLock<String>,
    file: Mutex<Option<String>>,
}

impl View {
    pub(super) fn new(
        manner: Manner,
        redactor: Redactor,
        spinner: Spinner,
        enough: Option<CancellationToken>,
    ) -> Self {
        let line = Line::new(manner.waits_for, manner.keys, Instant::now());
        Self(Arc::new(Shared {
            manner,
            redactor,
            canvas: Canvas::new(line, manner.drawn, spinner),
            enough,
            calls: Mutex::default(),
            lost: Mutex::default(),
            is_ready: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            failure: OnceLock::new(),
            file: Mutex::default(),
        }))
    }

    /// True if anything was understood, be it only that nothing is wanted.
    pub(super) fn has_heard(&self) -> bool {
        self.0.has_heard.load(Ordering::Relaxed)
    }

    /// Why a turn failed, if one did and it is known.
    pub(super) fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    pub(super) fn paint(&self) -> Painter {
        self.0.canvas.paint()
    }

    fn say(&self, said: Said) {
        self.0.canvas.say(said);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock()
    }

    fn known_lost(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lost.lock()
    }

    /// A line for a person, else another one for the log.
    fn remark(&self, line: impl FnOnce() -> String, log: impl FnOnce() -> String) {
        self.say(match self.0.manner.followed {
            true => Said::Line(line()),
            false => Said::Info(log()),
        });
    }

    pub(super) fn introduce(&self, chosen: &Chosen) {
        let text = format!("{}: {}", wanted_model::described(chosen), chosen.why);
        let dim = Style::new().dimmed();
        self.remark(|| format!("{dim}{text}{dim:#}"), || text.clone());
    }

    /// A line that only a person needs: the gateway logs the same.
    fn show(&self, line: impl FnOnce() -> String) {
        if self.0.manner.followed {
            self.say(Said::Line(line()));
        }
    }

    fn phase(&self, name: &str, took: Duration, problem: Option<&str>) {
        if problem.is_some() && self.known_lost().contains(name) {
            return;
        }
        self.show(|| {
            let (mark, dim) = (mark(problem.is_none()), Style::new().dimmed());
            let problem = self.below(problem);
            let (name, took) = (escape(name), seconds(took));
            format!("{mark} {name} {dim}{took}{dim:#}{problem}")
        });
    }

    /// What went wrong, in a line of its own.
    fn below(&self, problem: Option<&str>) -> String {
        let problem = problem.map(|text| self.0.redactor.line(text, SHOWN_ERROR));
        problem.map_or_else(String::new, |text| format!("\n    {text}"))
    }

    /// Servers of tools went or came back. At the start that is told with the rest.
    fn tools(&self, missing: Option<&str>) {
        if self.0.is_ready.load(Ordering::Relaxed) {
            self.show(|| match missing {
                None => format!("{} all servers of tools are there again", mark(true)),
                Some(what) => {
                    let what = self.0.redactor.line(what, SHOWN_ERROR);
                    format!("{} {what} can not be reached", mark(false))
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
                let help = match self.known_lost().is_empty() {
                    true => "",
                    false => "\n'toolgate doctor' says how to get what is missing.",
                };
                format!("{bold}Ready{bold:#}, but not for everything: {words}{help}")
            }
        });
    }

    fn heard(&self, text: &str) {
        self.0.has_heard.store(true, Ordering::Relaxed);
        let text = escape(text.trim());
        let style = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        self.0.canvas.line(Line::forget_words);
        self.remark(
            || format!("{style}›{style:#} {text}"),
            || format!("heard: {text}"),
        );
    }

    /// Files are heard one after the other, each to the end of its answers.
    fn file(&self, file: &Path) {
        let file = file.to_string_lossy().into_owned();
        *self.0.file.lock() = Some(file);
    }

    /// A line for programs: what became of something that was heard, and in which file that was.
    fn record(&self, source: &str, mut record: Value) {
        let file = self.0.file.lock();
        // Who asks in writing is in no file.
        if let Some(file) = file.as_ref().filter(|_| source == FILES) {
            record["file"] = json!(file);
        }
        drop(file);
        self.say(Said::Record(rendered(&record)));
    }

    fn dropped(&self, source: &str, heard: &str, why: &str) {
        if self.0.manner.json {
            let heard = heard.trim();
            let record =
                json!({ "source": source, "heard": heard, "outcome": "dropped", "reason": why });
            self.record(source, record);
        }
        let dim = Style::new().dimmed();
        let is_warned = why == Reason::Overrun.to_string();
        let why = escape(why);
        let shown = || format!("{dim}· {why}{dim:#}");
        match is_warned {
            // The log has a warning already.
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
        self.calls().begin(id, name, shown);
        self.0.canvas.line(Line::keep_words);
    }

    /// The log has a record of each call already.
    fn called(&self, outcome: &ToolOutcome) {
        let title = self.calls().end(outcome);
        self.show(|| {
            let (mark, dim) = (mark(outcome.is_success()), Style::new().dimmed());
            let took = seconds(outcome.elapsed);
            let error = self.below(outcome.error().as_deref());
            format!("{mark} {title} {dim}{took}{dim:#}{error}")
        });
    }

    fn turn(&self, turn: &VoiceTurn) {
        self.0.canvas.line(Line::forget_words);
        let calls = self.calls().take(&turn.calls);
        match self.0.manner.json {
            true => {
                let mut record = json!(turn);
                record["calls"] = calls;
                self.record(&turn.source, record);
            }
            false => self.say(Said::Result(clean(&turn.answer).trim().to_owned())),
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

    fn lost(&self, role: Role, why: &str) {
        self.hears(role, false);
        self.known_lost().insert(role.to_string());
        self.show(|| {
            let why = self.0.redactor.line(why, SHOWN_ERROR);
            format!("{} {role} is not there: {why}", mark(false))
        });
    }

    /// Without a microphone it does not look as if somebody listened.
    fn hears(&self, role: Role, is_there: bool) {
        if role == Role::Microphone {
            self.0.canvas.line(|line| line.deaf(!is_there));
        }
    }

    fn back(&self, role: Role) {
        self.hears(role, true);
        self.known_lost().remove(&role.to_string());
        self.show(|| format!("{} {role} is back", mark(true)));
    }
}

impl Watcher for View {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Phase {
                name,
                took,
                problem,
            } => self.phase(name, took, problem),
            Event::Ready { degraded } => self.ready(degraded),
            Event::Tools { missing } => self.tools(missing),
            Event::State(state) => self.0.canvas.line(|line| line.state(state, Instant::now())),
            Event::Level(level) => self.0.canvas.line(|line| line.level(level)),
            Event::Heard { text, .. } => self.heard(text),
            Event::File(file) => self.file(file),
            Event::Dropped { source, heard, why } => self.dropped(source, heard, why),
            Event::Calling {
                id,
                name,
                arguments,
            } => self.calling(id, name, arguments),
            Event::Called(outcome) => self.called(outcome),
            Event::Words(words) => self.0.canvas.line(|line| line.words(words)),
            Event::TakenBack => self.0.canvas.line(Line::take_back),
            Event::Turn(turn) => self.turn(turn),
            Event::Lost { role, why } => self.lost(role, why),
            Event::Back(role) => self.back(role),
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

/// How it ended, unless well, and where the time went: `transcribed in 620 ms · first word after 12 ms · sound after 80 ms · 1 call`.
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
    let calls = match calls {
        0 => None,
        1 => Some("1 call".to_owned()),
        several => Some(format!("{several} calls")),
    };
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
