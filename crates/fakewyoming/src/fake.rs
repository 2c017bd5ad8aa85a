//! What all fakes share: a port, clients, a record of events, faults.

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

    /// What it sends when a client connects.
    fn greet(&self) -> Vec<FakeReply> {
        Vec::new()
    }

    /// What it answers to an event. An `Err` is recorded as a complaint.
    fn on(&self, event: &ReceivedEvent, session: &mut FakeSession) -> Result<FakeReply, String>;
}

pub(crate) enum FakeReply {
    Nothing,
    /// Not an answer, so faults don't affect it.
    Now(Vec<Vec<u8>>),
    /// An answer, to which the next fault applies.
    Answer(Vec<Vec<u8>>),
    /// From now on this client gets what is pushed.
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
    part: Box<dyn FakeBehavior>,
    state: Mutex<FakeState>,
    /// The number of events so far, for those who wait.
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
    pub(crate) async fn start(part: impl FakeBehavior + 'static) -> Self {
        let shared = Arc::new(FakeShared {
            part: Box::new(part),
            state: Mutex::default(),
            events: watch::Sender::new(0),
        });
        let port = Port::take();
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
            // It ends with the news that it was aborted.
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

    /// Makes the next answer fail like this. A second call is for the answer after it.
    pub fn fault(&self, fault: ServiceFault) {
        self.shared.state().faults.push_back(fault);
    }

    /// Makes every answer fail like this from now on. [`ServiceFault::None`] ends it.
    pub fn always(&self, fault: ServiceFault) {
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

    /// Waits until this many events of a type have come and not been forgotten.
    pub async fn wait_for_events(&self, kind: &str, count: usize) {
        let is_there = || {
            let state = self.shared.state();
            let of_kind = state.got.iter().filter(|event| event.kind == kind);
            of_kind.count() >= count
        };
        let mut events = self.shared.events.subscribe();
        // The sender lives as long as the double that is borrowed here.
        drop(events.wait_for(|_| is_there()).await);
    }

    /// Sends events to every client that has joined, or to the first that will.
    pub(crate) fn push(&self, events: Vec<Vec<u8>>) {
        let mut state = self.shared.state();
        state.clients.retain(|client| !client.is_closed());
        if state.clients.is_empty() {
            state.waiting.extend(events);
            return;
        }
        for client in &state.clients {
            for event in &events {
                // A client that just left misses it, as it would have anyway.
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
        lock(&self.state)
    }

    fn keep(&self, event: &ReceivedEvent) {
        self.state().got.push(event.clone());
        self.events.send_modify(|count| *count += 1);
    }

    fn reply(&self, event: &ReceivedEvent, session: &mut FakeSession) -> FakeReply {
        match event.kind.as_str() {
            "describe" => FakeReply::Now(vec![frame::event("info", &self.part.info(), &[])]),
            "ping" => FakeReply::Now(vec![frame::event("pong", &event.data, &[])]),
            _ => self.part.on(event, session).unwrap_or_else(|complaint| {
                let error = frame::event("error", &json!({ "text": complaint }), &[]);
                self.state().complaints.push(complaint);
                FakeReply::Now(vec![error])
            }),
        }
    }

    fn say(&self, reply: FakeReply, out: &mpsc::UnboundedSender<ReplyStep>) {
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
            // The other half of the connection is gone only together with this one.
            drop(out.send(step));
        }
    }
}

/// The state is still useful after a test panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Derefs to [`Fake`], so that every fake has its methods.
macro_rules! is_a_fake {
    ($double:ty) => {
        impl std::ops::Deref for $double {
            type Target = $crate::Fake;

            fn deref(&self) -> &$crate::Fake {
                &self.fake
            }
        }

        impl std::ops::DerefMut for $double {
            fn deref_mut(&mut self) -> &mut $crate::Fake {
                &mut self.fake
            }
        }
    };
}
pub(crate) use is_a_fake;

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
        ended = hear(read, &shared, &out) => drop(ended),
        ended = speak(write, steps) => drop(ended),
    }
}

async fn hear(
    read: OwnedReadHalf,
    shared: &FakeShared,
    out: &mpsc::UnboundedSender<ReplyStep>,
) -> io::Result<()> {
    let mut read = BufReader::new(read);
    let mut session = FakeSession::default();
    for reply in shared.part.greet() {
        shared.say(reply, out);
    }
    while let Some(event) = frame::read(&mut read).await? {
        // Answered before the waiters are woken, so they find the answer on its way.
        let reply = shared.reply(&event, &mut session);
        shared.say(reply, out);
        shared.keep(&event);
    }
    Ok(())
}

async fn speak(
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
