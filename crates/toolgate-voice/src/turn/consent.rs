//! A call that waits for a spoken yes. Consent is never guessed: a yes counts only if the whole
//! question was heard before it, and everything else is a no.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Lock, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use toolgate_core::{
    Approval, ApprovalBy, ApprovalMeans, ApprovalReason, ApprovalRequest, Approver, CallId,
    Redactor, Source,
};

use super::progress::Progress;
use super::{BackgroundTranscriber, Shared};
use crate::speak::{Script, Spoken};
use crate::transcribe::{is_no, is_yes};
use crate::{Event, State};

/// How long a yes is waited for behind the question, the time to make text of it included.
const PATIENCE: Duration = Duration::from_secs(15);
/// Nobody keeps a longer question in mind, in letters.
const LONGEST: usize = 250;

/// How long the model's own words before a call may take.
const WORDS: Duration = Duration::from_secs(30);

const DECLINED: &str = "Okay, I won't.";
const UNANSWERED: &str = "I heard no yes, so I won't.";

/// Asks aloud before a tool runs. It is given to the executor before there is a voice, and to a
/// `BackgroundTranscriber` once there is one; until then, and for calls that nobody asked for
/// aloud, nobody is there to ask.
#[derive(Clone, Default)]
pub struct SpokenApprovals(Arc<Inner>);

#[derive(Default)]
struct Inner {
    redactor: Redactor,
    voice: Mutex<Weak<Shared>>,
}

impl SpokenApprovals {
    /// Secrets that the redactor knows are not said aloud, and so not approved aloud either.
    pub fn new(redactor: Redactor) -> Self {
        let voice = Mutex::default();
        Self(Arc::new(Inner { redactor, voice }))
    }

    /// Asks with this voice from now on.
    pub(crate) fn use_voice(&self, transcriber: &BackgroundTranscriber) {
        *self.0.voice.lock() = Arc::downgrade(&transcriber.shared);
    }
}

impl Approver for SpokenApprovals {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let voice = self.0.voice.lock().upgrade();
            let (Some(voice), Some(question)) = (voice, question(&request, &self.0.redactor))
            else {
                return Approval::Nobody;
            };
            let name = request.tool.name();
            voice.ask_aloud(request.id, name, &question).await
        })
    }
}

/// The question, word for word as it is said; `None` if it can't be said so that it is understood.
fn question(request: &ApprovalRequest<'_>, redactor: &Redactor) -> Option<String> {
    let spaced = |name: &str| name.replace('_', " ");
    let arguments = redactor.value(request.arguments);
    let named = arguments.as_object()?.iter().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{} {value}", spaced(name))
    });
    let mut asked = format!("Shall I use {}", spaced(request.tool.name()));
    if let Source::Mcp(server) = request.tool.source() {
        asked.push_str(&format!(" of {}", spaced(server)));
    }
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        asked.push_str(&format!(" with {}", named.join(", ")));
    }
    // Marks and links would be left out of what is said, and hidden letters can't be heard.
    let is_heard = |letter: char| letter.is_alphanumeric() || " .,:;'-_%+°".contains(letter);
    let can_be_said = asked.chars().count() <= LONGEST && asked.chars().all(is_heard);
    let before = match request.reason {
        ApprovalReason::Flow => "This could send out what I have read. ",
        _ => "",
    };
    can_be_said.then(|| format!("{before}{asked}? Say yes or no."))
}

#[derive(Default)]
pub(super) struct Consent {
    /// Only who is in the room can say yes.
    turn: Mutex<Option<AloudTurn>>,
    /// Two calls of a turn are asked about one after the other.
    asking: Lock<()>,
    open: Mutex<Option<Open>>,
    /// Counts the questions that wait for an answer: the ear listens without being called.
    expected: watch::Sender<u64>,
}

#[derive(Clone)]
pub(super) struct AloudTurn {
    pub(super) number: u64,
    pub(super) progress: Progress,
    pub(super) script: Arc<Script>,
}

/// A question that was heard to its end.
struct Open {
    since: Instant,
    answer: oneshot::Sender<bool>,
}

impl Consent {
    pub(super) fn set_turn(&self, turn: Option<AloudTurn>) {
        *self.turn.lock() = turn;
    }

    /// True if what is said next may be an answer.
    pub(super) fn is_open(&self) -> bool {
        self.open.lock().is_some()
    }

    pub(super) fn expected(&self) -> watch::Receiver<u64> {
        self.expected.subscribe()
    }

    fn turn_of(&self, id: CallId) -> Option<AloudTurn> {
        let turn = self.turn.lock();
        turn.clone().filter(|turn| turn.progress.has_call(id))
    }

    fn open(&self) -> (Asking<'_>, oneshot::Receiver<bool>) {
        let (answer, answered) = oneshot::channel();
        let since = Instant::now();
        *self.open.lock() = Some(Open { since, answer });
        self.expected.send_modify(|count| *count += 1);
        (Asking(self), answered)
    }

    /// Takes words that began then for the answer, if one is waited for. False if they are none, or
    /// say something else besides.
    pub(super) fn take(&self, heard: &str, began: Instant) -> bool {
        let mut open = self.open.lock();
        let Some(question) = open.take_if(|open| open.since <= began) else {
            return false;
        };
        let (yes, no) = (is_yes(heard), is_no(heard));
        // Nobody waits for it any more: then it was too late.
        let _in_time = question.answer.send(yes).is_ok();
        yes || no
    }
}

/// While it lives, an answer is waited for.
struct Asking<'a>(&'a Consent);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        *self.0.open.lock() = None;
    }
}

impl Shared {
    async fn ask_aloud(&self, id: CallId, tool: &str, question: &str) -> Approval {
        let Some(turn) = self.consent.turn_of(id) else {
            return Approval::Nobody;
        };
        let _one_at_a_time = self.consent.asking.lock().await;
        let _asking = turn.progress.asks();
        tokio::select! {
            biased;
            () = self.until_given_up(turn.number) => return Approval::Refused(spoken_by()),
            said = timeout(WORDS, turn.words_are_said()) => if said.is_err() {
                return Approval::Nobody;
            }
        }
        let spoken = self.say_behind(question).await;
        match (spoken.complete, &spoken.problem) {
            (true, _) => {}
            (false, Some(_)) => return Approval::Nobody,
            // Who interrupts did not hear all of it.
            (false, None) => return Approval::Refused(spoken_by()),
        }
        let (asking, answered) = self.consent.open();
        let answer = tokio::select! {
            biased;
            () = self.until_given_up(turn.number) => return Approval::Refused(spoken_by()),
            answer = timeout(PATIENCE, answered) => answer,
        };
        drop(asking);
        self.state(&State::Calling(tool.to_owned()));
        let words = match answer {
            Ok(Ok(true)) => return Approval::Granted(spoken_by()),
            Ok(_) => DECLINED,
            Err(_) => UNANSWERED,
        };
        self.say_behind(words).await;
        Approval::Refused(spoken_by())
    }

    /// Says words of ours behind those of the model.
    async fn say_behind(&self, words: &str) -> Spoken {
        self.state(&State::Speaking);
        self.watcher.event(Event::Words(&format!("{words} ")));
        let spoken = self.speaker.announce(words).await;
        self.engines.spoke(&spoken);
        spoken
    }
}

fn spoken_by() -> ApprovalBy {
    ApprovalBy::new(ApprovalMeans::Voice)
}

impl AloudTurn {
    /// What the model said before it called comes before the question about that.
    async fn words_are_said(&self) {
        const LOOK: Duration = Duration::from_millis(20);
        while self.progress.has_words() || !self.script.is_said() {
            sleep(LOOK).await;
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

    /// Keeps the question that a person would hear.
    #[derive(Clone, Default)]
    struct Asked(Arc<Mutex<Option<String>>>);

    impl Approver for Asked {
        fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
            *self.0.lock() = question(&request, &Redactor::default());
            Box::pin(std::future::ready(Approval::Refused(spoken_by())))
        }
    }

    async fn asked(arguments: Value) -> Option<String> {
        let definition = ToolDefinition::builder("control_lock", "Locks", json!({}));
        let source = Source::Mcp("house".to_owned());
        let lock_tool = FunctionTool::defined(definition.source(source), async |_: Value, _| {
            Ok::<_, ToolError>("")
        });
        let manager = ToolManager::new();
        manager.add(lock_tool.unwrap());
        let asked = Asked::default();
        let policy: Policy = serde_json::from_value(json!({ "ask": ["*"] })).unwrap();
        let executor = ToolExecutor::builder(Arc::new(manager)).policy(policy);
        let executor = executor.approver(asked.clone()).build();
        executor
            .execute(ToolCall::new("control_lock", arguments))
            .await;
        asked.0.lock().take()
    }

    #[tokio::test]
    async fn the_question_says_the_tool_and_all_it_would_get() {
        let arguments = json!({ "lock_name": "Front Door", "code": 12 });
        assert_eq!(
            asked(arguments).await.unwrap(),
            "Shall I use control lock of house with lock name Front Door, code 12? Say yes or no."
        );
        let bare = "Shall I use control lock of house? Say yes or no.";
        assert_eq!(asked(json!({})).await.unwrap(), bare);
    }

    #[tokio::test]
    async fn what_cannot_be_heard_is_not_asked_aloud() {
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
