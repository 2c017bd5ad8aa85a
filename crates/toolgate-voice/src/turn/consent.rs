//! Asks for a spoken yes before a tool call. Consent is never guessed: a yes counts only after the
//! whole question was heard, and everything else is a no.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Lock, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalReason, ApprovalRequest, Approver, CallId,
    Redactor, ToolSource,
};

use super::progress::TurnProgress;
use super::{BackgroundTranscriber, TurnEngine};
use crate::speak::{AnswerScript, SpeechOutcome};
use crate::transcribe::{is_no, is_yes};
use crate::{VoiceEvent, VoiceState};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
// In characters. A longer question would be approved without being understood.
const MAX_QUESTION_CHARS: usize = 250;
const WORDS_TIMEOUT: Duration = Duration::from_secs(30);
const DECLINED: &str = "Okay, I won't.";
const UNANSWERED: &str = "I didn't hear a yes, so I won't.";

/// An [`Approver`] that asks aloud and listens for a yes.
///
/// It belongs to an executor, which exists before the gateway; [`run`](crate::run) connects the
/// two. Until then, and for calls that were not requested aloud, nobody can be asked.
#[derive(Clone, Default)]
pub struct SpokenApprovals(Arc<ApprovalsInner>);

#[derive(Default)]
struct ApprovalsInner {
    redactor: Redactor,
    voice: Mutex<Weak<TurnEngine>>,
}

impl SpokenApprovals {
    /// Secrets the redactor knows are never said aloud, so such calls can't be approved aloud.
    pub fn new(redactor: Redactor) -> Self {
        let voice = Mutex::default();
        Self(Arc::new(ApprovalsInner { redactor, voice }))
    }

    pub(crate) fn connect(&self, transcriber: &BackgroundTranscriber) {
        *self.0.voice.lock() = Arc::downgrade(&transcriber.shared);
    }
}

impl Approver for SpokenApprovals {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let voice = self.0.voice.lock().upgrade();
            let (Some(voice), Some(question)) = (voice, build_question(&request, &self.0.redactor))
            else {
                return Approval::Nobody;
            };
            let name = request.tool.name();
            voice.ask_aloud(request.id, name, &question).await
        })
    }
}

/// The question as it is spoken. `None` if it can't be spoken clearly.
fn build_question(request: &ApprovalRequest<'_>, redactor: &Redactor) -> Option<String> {
    let spaced = |name: &str| name.replace('_', " ");
    let arguments = redactor.value(request.arguments);
    let named = arguments.as_object()?.iter().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{} {value}", spaced(name))
    });
    let mut asked = format!("Shall I use {}", spaced(request.tool.name()));
    if let ToolSource::Mcp(server) = request.tool.source() {
        asked.push_str(&format!(" of {}", spaced(server)));
    }
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        asked.push_str(&format!(" with {}", named.join(", ")));
    }
    // Speech drops marks and links, and hidden letters can't be heard: such a question would
    // hide what is approved.
    let is_heard = |letter: char| letter.is_alphanumeric() || " .,:;'-_%+°".contains(letter);
    let can_be_said = asked.chars().count() <= MAX_QUESTION_CHARS && asked.chars().all(is_heard);
    let before = match request.reason {
        ApprovalReason::Flow => "This could send out what I have read. ",
        _ => "",
    };
    can_be_said.then(|| format!("{before}{asked}? Say yes or no."))
}

#[derive(Default)]
pub(super) struct ConsentState {
    // Only somebody in the room can say yes, so only spoken turns ask.
    turn: Mutex<Option<SpokenTurn>>,
    asking: Lock<()>,
    open: Mutex<Option<OpenQuestion>>,
    /// Counts questions, so that capture listens without a wake word.
    question_count: watch::Sender<u64>,
}

#[derive(Clone)]
pub(super) struct SpokenTurn {
    pub(super) number: u64,
    pub(super) progress: TurnProgress,
    pub(super) script: Arc<AnswerScript>,
}

struct OpenQuestion {
    since: Instant,
    answer: oneshot::Sender<bool>,
}

impl ConsentState {
    pub(super) fn set_turn(&self, turn: Option<SpokenTurn>) {
        *self.turn.lock() = turn;
    }

    pub(super) fn has_open_question(&self) -> bool {
        self.open.lock().is_some()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.question_count.subscribe()
    }

    fn turn_with_call(&self, id: CallId) -> Option<SpokenTurn> {
        let turn = self.turn.lock();
        turn.clone().filter(|turn| turn.progress.has_call(id))
    }

    fn open_question(&self) -> (OpenQuestionGuard<'_>, oneshot::Receiver<bool>) {
        let (answer, answered) = oneshot::channel();
        let since = Instant::now();
        *self.open.lock() = Some(OpenQuestion { since, answer });
        self.question_count.send_modify(|count| *count += 1);
        (OpenQuestionGuard(self), answered)
    }

    /// Answers the open question with these words if they began after it. Anything but a yes
    /// declines. Returns true if the words are only a yes or no, and so are not a request.
    pub(super) fn try_answer(&self, heard: &str, began: Instant) -> bool {
        let mut open = self.open.lock();
        let Some(question) = open.take_if(|open| open.since <= began) else {
            return false;
        };
        let (yes, no) = (is_yes(heard), is_no(heard));
        // Fails if the question has timed out meanwhile.
        let _in_time = question.answer.send(yes).is_ok();
        yes || no
    }
}

struct OpenQuestionGuard<'a>(&'a ConsentState);

impl Drop for OpenQuestionGuard<'_> {
    fn drop(&mut self) {
        *self.0.open.lock() = None;
    }
}

impl TurnEngine {
    async fn ask_aloud(&self, id: CallId, tool: &str, question: &str) -> Approval {
        let Some(turn) = self.consent.turn_with_call(id) else {
            return Approval::Nobody;
        };
        let _one_at_a_time = self.consent.asking.lock().await;
        let _asking = turn.progress.begin_asking();
        tokio::select! {
            biased;
            () = self.until_given_up(turn.number) => return Approval::Refused(spoken_actor()),
            said = timeout(WORDS_TIMEOUT, turn.wait_for_words()) => if said.is_err() {
                return Approval::Nobody;
            }
        }
        let spoken = self.say_after_model(question).await;
        match (spoken.complete, &spoken.problem) {
            (true, _) => {}
            (false, Some(_)) => return Approval::Nobody,
            // Somebody who interrupts hasn't heard the whole question.
            (false, None) => return Approval::Refused(spoken_actor()),
        }
        let (asking, answered) = self.consent.open_question();
        let answer = tokio::select! {
            biased;
            () = self.until_given_up(turn.number) => return Approval::Refused(spoken_actor()),
            answer = timeout(ANSWER_TIMEOUT, answered) => answer,
        };
        drop(asking);
        self.report_state(&VoiceState::Calling(tool.to_owned()));
        let words = match answer {
            Ok(Ok(true)) => return Approval::Granted(spoken_actor()),
            Ok(_) => DECLINED,
            Err(_) => UNANSWERED,
        };
        self.say_after_model(words).await;
        Approval::Refused(spoken_actor())
    }

    async fn say_after_model(&self, words: &str) -> SpeechOutcome {
        self.report_state(&VoiceState::Speaking);
        self.observer.event(VoiceEvent::Words(&format!("{words} ")));
        let spoken = self.speaker.announce(words).await;
        self.engines.record_speech(&spoken);
        spoken
    }
}

fn spoken_actor() -> ApprovalActor {
    ApprovalActor::new(ApprovalChannel::Voice)
}

impl SpokenTurn {
    // The model's words before the call belong before the question about it.
    async fn wait_for_words(&self) {
        const POLL_INTERVAL: Duration = Duration::from_millis(20);
        while !self.progress.state().words.is_empty() || !self.script.is_said() {
            sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolgate_core::{
        FunctionTool, Policy, ToolCall, ToolDefinition, ToolError, ToolExecutor, ToolManager,
    };

    use super::*;

    /// Records the question instead of asking it.
    #[derive(Clone, Default)]
    struct QuestionRecorder(Arc<Mutex<Option<String>>>);

    impl Approver for QuestionRecorder {
        fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            *self.0.lock() = build_question(&request, &Redactor::default());
            Box::pin(std::future::ready(Approval::Refused(spoken_actor())))
        }
    }

    async fn asked(arguments: Value) -> Option<String> {
        let definition = ToolDefinition::builder("control_lock", "Locks", json!({}));
        let source = ToolSource::Mcp("house".to_owned());
        let lock_tool =
            FunctionTool::with_definition(definition.source(source), async |_: Value, _| {
                Ok::<_, ToolError>("")
            });
        let manager = ToolManager::new();
        manager.add(lock_tool.unwrap());
        let asked = QuestionRecorder::default();
        let policy: Policy = serde_json::from_value(json!({ "ask": ["*"] })).unwrap();
        let executor = ToolExecutor::builder(Arc::new(manager)).policy(policy);
        let executor = executor.approver(asked.clone()).build();
        executor
            .execute(ToolCall::new("control_lock", arguments))
            .await;
        asked.0.lock().take()
    }

    #[tokio::test]
    async fn question_names_the_tool_and_its_arguments() {
        let arguments = json!({ "lock_name": "Front Door", "code": 12 });
        assert_eq!(
            asked(arguments).await.unwrap(),
            "Shall I use control lock of house with lock name Front Door, code 12? Say yes or no."
        );
        let bare = "Shall I use control lock of house? Say yes or no.";
        assert_eq!(asked(json!({})).await.unwrap(), bare);
    }

    #[tokio::test]
    async fn inaudible_arguments_are_not_asked_aloud() {
        for hidden in [
            json!({ "url": "https://evil.example/?q=notes" }),
            json!({ "text": "lamp `rm -rf`" }),
            json!({ "text": "lamp\u{200b}" }),
            json!({ "text": "[lamp](x)" }),
            json!({ "password": "hunter2" }),
            json!({ "text": "long ".repeat(60) }),
        ] {
            assert_eq!(asked(hidden.clone()).await, None, "{hidden}");
        }
    }
}
