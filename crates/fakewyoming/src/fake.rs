//! What all doubles have in common: a port, clients, a record, faults.

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

use crate::fault::Step;
use crate::frame::{self, Got};
use crate::{Fault, Port};

/// A double that listens until it is killed or dropped.
pub struct Fake {
    shared: Arc<Shared>,
    port: Port,
    listening: Option<JoinHandle<()>>,
}

pub(crate) trait Part: Send + Sync {
    /// Its answer to `describe`.
    fn info(&self) -> Value;

    /// What it says when somebody connects.
    fn greet(&self) -> Vec<Reply> {
        Vec::new()
    }

    /// What it says to an event. `Err` is a complaint.
    fn on(&self, event: &Got, session: &mut Session) -> Result<Reply, String>;
}

pub(crate) enum Reply {
    Nothing,
    /// Small talk: faults do not touch it.
    Now(Vec<Vec<u8>>),
    /// An answer: the next fault applies.
    Answer(Vec<Vec<u8>>),
    /// From now on this client gets what is pushed.
    Join,
}

/// What a connection has brought so far.
#[derive(Default)]
pub(crate) struct Session {
    /// The sound since the last start.
    pub(crate) sound: Option<Vec<u8>>,
    /// Streaming text since its start.
    pub(crate) text: Option<String>,
}

impl Session {
    /// Takes sound in, and gives all of it at its end. Sound without a beginning, with two, or with half a sample is a complaint.
    pub(crate) fn hear(&mut self, event: &Got) -> Result<Option<Vec<u8>>, String> {
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

fn bytes_per_sample(event: &Got) -> Result<usize, String> {
    let number = |key: &str| event.data[key].as_u64().filter(|number| *number > 0);
    let all = number("rate").and(number("width")).zip(number("channels"));
    let (width, channels) = all.ok_or_else(|| format!("'{}' has no format", event.kind))?;
    Ok((width * channels) as usize)
}

pub(crate) struct Shared {
    part: Box<dyn Part>,
    state: Mutex<State>,
    /// How many events have come, for those who wait.
    events: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    got: Vec<Got>,
    complaints: Vec<String>,
    faults: VecDeque<Fault>,
    always: Option<Fault>,
    connections: usize,
    clients: Vec<mpsc::UnboundedSender<Step>>,
    /// Pushed while nobody was there.
    waiting: Vec<Vec<u8>>,
}

impl Fake {
    pub(crate) async fn start(part: impl Part + 'static) -> Self {
        let shared = Arc::new(Shared {
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

    /// `tcp://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.port.address()
    }

    /// Breaks all connections, and takes no more. The port stays its own.
    pub async fn kill(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            // It ends with the news that it was aborted.
            drop(listening.await);
        }
        self.shared.state().clients.clear();
    }

    /// Listens again, on the same port.
    ///
    /// # Panics
    /// If somebody listens there who named the port: nobody is given it.
    pub async fn restart(&mut self) {
        self.kill().await;
        let listener = self.port.listen().await;
        self.listening = Some(tokio::spawn(listen(listener, Arc::clone(&self.shared))));
    }

    /// The next answer fails like this; a second call is for the answer after it.
    pub fn fault(&self, fault: Fault) {
        self.shared.state().faults.push_back(fault);
    }

    /// Every answer fails like this from now on; [`Fault::None`] heals.
    pub fn always(&self, fault: Fault) {
        self.shared.state().always = Some(fault);
    }

    /// All events so far, of all connections.
    pub fn got(&self) -> Vec<Got> {
        self.shared.state().got.clone()
    }

    /// The events of one type.
    pub fn got_of(&self, kind: &str) -> Vec<Got> {
        let state = self.shared.state();
        let of_kind = state.got.iter().filter(|event| event.kind == kind);
        of_kind.cloned().collect()
    }

    /// What clients did wrong.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.state().complaints.clone()
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Forgets the events so far, for a double that is used very often.
    pub fn forget(&self) {
        self.shared.state().got.clear();
    }

    /// Waits until so many events of a type have come and were not forgotten.
    pub async fn until(&self, kind: &str, count: usize) {
        let is_there = || {
            let state = self.shared.state();
            let of_kind = state.got.iter().filter(|event| event.kind == kind);
            of_kind.count() >= count
        };
        let mut events = self.shared.events.subscribe();
        // The sender lives as long as the double that is borrowed here.
        drop(events.wait_for(|_| is_there()).await);
    }

    /// Sends this to every client that has joined, or to the first that will.
    pub(crate) fn push(&self, events: Vec<Vec<u8>>) {
        let mut state = self.shared.state();
        state.clients.retain(|client| !client.is_closed());
        if state.clients.is_empty() {
            state.waiting.extend(events);
            return;
        }
        for client in &state.clients {
            for event in &events {
                // One that has gone just now misses it, as it would have anyway.
                drop(client.send(Step::Send(event.clone())));
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

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn keep(&self, event: &Got) {
        self.state().got.push(event.clone());
        self.events.send_modify(|count| *count += 1);
    }

    fn reply(&self, event: &Got, session: &mut Session) -> Reply {
        match event.kind.as_str() {
            "describe" => Reply::Now(vec![frame::event("info", &self.part.info(), &[])]),
            "ping" => Reply::Now(vec![frame::event("pong", &event.data, &[])]),
            _ => self.part.on(event, session).unwrap_or_else(|complaint| {
                let error = frame::event("error", &json!({ "text": complaint }), &[]);
                self.state().complaints.push(complaint);
                Reply::Now(vec![error])
            }),
        }
    }

    fn say(&self, reply: Reply, out: &mpsc::UnboundedSender<Step>) {
        let mut state = self.state();
        let steps: Vec<Step> = match reply {
            Reply::Nothing => Vec::new(),
            Reply::Now(events) => events.into_iter().map(Step::Send).collect(),
            Reply::Answer(events) => {
                let next = state.faults.pop_front().or_else(|| state.always.clone());
                next.unwrap_or(Fault::None).apply(events)
            }
            Reply::Join => {
                state.clients.push(out.clone());
                state.waiting.drain(..).map(Step::Send).collect()
            }
        };
        for step in steps {
            // The other half of the connection is gone only together with this one.
            drop(out.send(step));
        }
    }
}

/// What a panicking test leaves is still of use.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// A double can do what all doubles can.
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

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.state().connections += 1;
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let (read, write) = stream.into_split();
    let (out, steps) = mpsc::unbounded_channel();
    tokio::select! {
        // A client that goes away is no failure of the double.
        ended = hear(read, &shared, &out) => drop(ended),
        ended = speak(write, steps) => drop(ended),
    }
}

async fn hear(
    read: OwnedReadHalf,
    shared: &Shared,
    out: &mpsc::UnboundedSender<Step>,
) -> io::Result<()> {
    let mut read = BufReader::new(read);
    let mut session = Session::default();
    for reply in shared.part.greet() {
        shared.say(reply, out);
    }
    while let Some(event) = frame::read(&mut read).await? {
        // Answered before it is told: who waits for it finds the answer on its way.
        let reply = shared.reply(&event, &mut session);
        shared.say(reply, out);
        shared.keep(&event);
    }
    Ok(())
}

async fn speak(
    mut write: OwnedWriteHalf,
    mut steps: mpsc::UnboundedReceiver<Step>,
) -> io::Result<()> {
    while let Some(step) = steps.recv().await {
        match step {
            Step::Send(bytes) => write.write_all(&bytes).await?,
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Close => break,
        }
    }
    Ok(())
}
