//! What all fakes have in common: a port, clients, recorded events and faults.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::fault::ReplyStep;
use crate::frame::{self, ReceivedEvent};
use crate::{Port, ServiceFault};

/// A fake that listens until it is killed or dropped.
pub struct Fake {
    shared: Arc<FakeShared>,
    port: Port,
    listening: Option<JoinHandle<()>>,
}

pub(crate) trait FakeBehavior: Send + Sync {
    /// Its answer to `describe`.
    fn info(&self) -> Value;

    /// The replies to a new connection.
    fn greet(&self) -> Vec<FakeReply> {
        Vec::new()
    }

    /// The reply to an event. An `Err` is recorded as a complaint.
    fn reply_to(
        &self,
        event: &ReceivedEvent,
        session: &mut FakeSession,
    ) -> Result<FakeReply, String>;
}

pub(crate) enum FakeReply {
    Nothing,
    /// Events that faults don't affect.
    Now(Vec<Vec<u8>>),
    /// An answer, to which the next fault applies.
    Answer(Vec<Vec<u8>>),
    /// Sends all pushed events to this client from now on.
    Join,
}

/// What a connection has received so far.
#[derive(Default)]
pub(crate) struct FakeSession {
    /// The audio since the last start.
    pub(crate) sound: Option<Vec<u8>>,
    /// Streaming text since its start.
    pub(crate) text: Option<String>,
}

impl FakeSession {
    /// Collects audio and returns all of it at its end. Audio without a start, with two, or with
    /// half a sample is a complaint.
    pub(crate) fn collect_sound(
        &mut self,
        event: &ReceivedEvent,
    ) -> Result<Option<Vec<u8>>, String> {
        match event.kind.as_str() {
            "audio-start" => {
                bytes_per_sample(event)?;
                match self.sound.replace(Vec::new()) {
                    None => Ok(None),
                    Some(_) => Err("'audio-start' came twice".to_owned()),
                }
            }
            "audio-chunk" => {
                let whole = event.payload.len().is_multiple_of(bytes_per_sample(event)?);
                let sound = self.sound.as_mut();
                let sound = sound.ok_or("'audio-chunk' came before 'audio-start'")?;
                sound.extend_from_slice(&event.payload);
                match whole {
                    true => Ok(None),
                    false => Err("'audio-chunk' ends within a sample".to_owned()),
                }
            }
            "audio-stop" => match self.sound.take() {
                Some(sound) => Ok(Some(sound)),
                None => Err("'audio-stop' came before 'audio-start'".to_owned()),
            },
            _ => Ok(None),
        }
    }
}

fn bytes_per_sample(event: &ReceivedEvent) -> Result<usize, String> {
    let number = |key: &str| event.data[key].as_u64().filter(|number| *number > 0);
    let all = number("rate").and(number("width")).zip(number("channels"));
    let (width, channels) = all.ok_or_else(|| format!("'{}' has no format", event.kind))?;
    Ok((width * channels) as usize)
}

pub(crate) struct FakeShared {
    behavior: Box<dyn FakeBehavior>,
    state: Mutex<FakeState>,
    /// The number of events so far. Wakes `wait_for_events`.
    events: watch::Sender<usize>,
}

#[derive(Default)]
struct FakeState {
    got: Vec<ReceivedEvent>,
    complaints: Vec<String>,
    faults: VecDeque<ServiceFault>,
    always: Option<ServiceFault>,
    connections: usize,
    clients: Vec<mpsc::UnboundedSender<ReplyStep>>,
    /// Events pushed while no client had joined.
    waiting: Vec<Vec<u8>>,
}

impl Fake {
    pub(crate) async fn start(behavior: impl FakeBehavior + 'static) -> Self {
        let shared = Arc::new(FakeShared {
            behavior: Box::new(behavior),
            state: Mutex::default(),
            events: watch::Sender::new(0),
        });
        let port = Port::reserve();
        let listener = port.listen().await;
        let listening = Some(tokio::spawn(listen(listener, Arc::clone(&shared))));
        Self {
            shared,
            port,
            listening,
        }
    }

    pub fn address(&self) -> String {
        self.port.address()
    }

    /// Breaks all connections and accepts no more, but keeps the port.
    pub async fn kill(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            // Fails because the task was aborted.
            drop(listening.await);
        }
        self.shared.state().clients.clear();
    }

    /// # Panics
    /// If another process took the port by its number.
    pub async fn restart(&mut self) {
        self.kill().await;
        let listener = self.port.listen().await;
        self.listening = Some(tokio::spawn(listen(listener, Arc::clone(&self.shared))));
    }

    /// Applies a fault to the next answer. A second call queues one for the answer after it.
    pub fn inject_fault(&self, fault: ServiceFault) {
        self.shared.state().faults.push_back(fault);
    }

    /// Applies a fault to every answer from now on, until it is replaced by [`ServiceFault::None`].
    pub fn inject_permanent_fault(&self, fault: ServiceFault) {
        self.shared.state().always = Some(fault);
    }

    pub fn received(&self) -> Vec<ReceivedEvent> {
        self.shared.state().got.clone()
    }

    pub fn received_of_kind(&self, kind: &str) -> Vec<ReceivedEvent> {
        let state = self.shared.state();
        let of_kind = state.got.iter().filter(|event| event.kind == kind);
        of_kind.cloned().collect()
    }

    /// The protocol errors of clients so far.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.state().complaints.clone()
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Forgets the events so far, for a fake that is reused often.
    pub fn forget(&self) {
        self.shared.state().got.clear();
    }

    /// Waits until at least `count` events of this type are recorded.
    pub async fn wait_for_events(&self, kind: &str, count: usize) {
        let is_there = || {
            let state = self.shared.state();
            let of_kind = state.got.iter().filter(|event| event.kind == kind);
            of_kind.count() >= count
        };
        let mut events = self.shared.events.subscribe();
        // Fails only without a sender, which `self` holds.
        drop(events.wait_for(|_| is_there()).await);
    }

    /// Sends events to every client that has joined or, if there is none, to the first that joins.
    pub(crate) fn push(&self, events: Vec<Vec<u8>>) {
        let mut state = self.shared.state();
        state.clients.retain(|client| !client.is_closed());
        if state.clients.is_empty() {
            state.waiting.extend(events);
            return;
        }
        for client in &state.clients {
            for event in &events {
                // A client that has just disconnected misses the event.
                drop(client.send(ReplyStep::Send(event.clone())));
            }
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

impl FakeShared {
    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock()
    }

    fn record(&self, event: &ReceivedEvent) {
        self.state().got.push(event.clone());
        self.events.send_modify(|count| *count += 1);
    }

    fn reply(&self, event: &ReceivedEvent, session: &mut FakeSession) -> FakeReply {
        match event.kind.as_str() {
            "describe" => FakeReply::Now(vec![frame::encode_event(
                "info",
                &self.behavior.info(),
                &[],
            )]),
            "ping" => FakeReply::Now(vec![frame::encode_event("pong", &event.data, &[])]),
            _ => self
                .behavior
                .reply_to(event, session)
                .unwrap_or_else(|complaint| {
                    let error = frame::encode_event("error", &json!({ "text": complaint }), &[]);
                    self.state().complaints.push(complaint);
                    FakeReply::Now(vec![error])
                }),
        }
    }

    fn send_reply(&self, reply: FakeReply, out: &mpsc::UnboundedSender<ReplyStep>) {
        let mut state = self.state();
        let steps: Vec<ReplyStep> = match reply {
            FakeReply::Nothing => Vec::new(),
            FakeReply::Now(events) => events.into_iter().map(ReplyStep::Send).collect(),
            FakeReply::Answer(events) => {
                let next = state.faults.pop_front().or_else(|| state.always.clone());
                next.unwrap_or(ServiceFault::None).apply(events)
            }
            FakeReply::Join => {
                state.clients.push(out.clone());
                state.waiting.drain(..).map(ReplyStep::Send).collect()
            }
        };
        for step in steps {
            // Fails only if the connection is being closed.
            drop(out.send(step));
        }
    }
}

/// Derefs to [`Fake`], so that every fake has its methods.
macro_rules! deref_to_fake {
    ($fake:ty) => {
        impl std::ops::Deref for $fake {
            type Target = $crate::Fake;

            fn deref(&self) -> &$crate::Fake {
                &self.fake
            }
        }

        impl std::ops::DerefMut for $fake {
            fn deref_mut(&mut self) -> &mut $crate::Fake {
                &mut self.fake
            }
        }
    };
}
pub(crate) use deref_to_fake;

async fn listen(listener: TcpListener, shared: Arc<FakeShared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.state().connections += 1;
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<FakeShared>) {
    let (read, write) = stream.into_split();
    let (out, steps) = mpsc::unbounded_channel();
    tokio::select! {
        // A client that leaves is not a failure.
        ended = read_events(read, &shared, &out) => drop(ended),
        ended = write_steps(write, steps) => drop(ended),
    }
}

async fn read_events(
    read: OwnedReadHalf,
    shared: &FakeShared,
    out: &mpsc::UnboundedSender<ReplyStep>,
) -> io::Result<()> {
    let mut read = BufReader::new(read);
    let mut session = FakeSession::default();
    for reply in shared.behavior.greet() {
        shared.send_reply(reply, out);
    }
    while let Some(event) = frame::read_event(&mut read).await? {
        // Replies before `record` wakes waiting tests, so the reply is already on its way then.
        let reply = shared.reply(&event, &mut session);
        shared.send_reply(reply, out);
        shared.record(&event);
    }
    Ok(())
}

async fn write_steps(
    mut write: OwnedWriteHalf,
    mut steps: mpsc::UnboundedReceiver<ReplyStep>,
) -> io::Result<()> {
    while let Some(step) = steps.recv().await {
        match step {
            ReplyStep::Send(bytes) => write.write_all(&bytes).await?,
            ReplyStep::Wait(time) => tokio::time::sleep(time).await,
            ReplyStep::Close => break,
        }
    }
    Ok(())
}
