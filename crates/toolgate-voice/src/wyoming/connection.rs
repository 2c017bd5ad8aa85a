//! A connection to a service.

use std::time::Duration;
use std::{fmt, io};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

use super::frame::excerpt;
use super::{Address, Decoder, Event, FrameError, Info, encode};
use crate::{EngineError, engine};

/// How long a peer may take to take an event.
const SEND: Duration = Duration::from_secs(10);
/// How long an event may take to arrive, from its first byte.
const ARRIVE: Duration = Duration::from_secs(10);
/// How long, and for how much, a peer is listened to that has been told good-bye.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;
const READ: usize = 16 << 10;

/// A connection over which events are sent and received. It is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
}

impl Connection {
    pub(crate) async fn connect(address: &Address, within: Duration) -> Result<Self, EngineError> {
        let at = address.to_string();
        match timeout(within, open(address, &at)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(EngineError::Unreachable {
                at,
                why: error.to_string(),
            }),
            Err(_) => Err(EngineError::timed_out(at, within)),
        }
    }

    /// A connection over any two streams, `at` in its errors.
    pub(crate) fn over(
        read: impl AsyncRead + Send + Sync + Unpin + 'static,
        write: impl AsyncWrite + Send + Sync + Unpin + 'static,
        at: &str,
    ) -> Self {
        Self {
            sender: Sender {
                write: Box::new(write),
                at: at.to_owned(),
            },
            receiver: Receiver {
                read: Box::new(read),
                decoder: Decoder::default(),
                begun: None,
                at: at.to_owned(),
            },
        }
    }

    pub(crate) async fn send(&mut self, event: &Event) -> Result<(), EngineError> {
        self.sender.send(event).await
    }

    pub(crate) async fn receive(&mut self) -> Result<Option<Event>, EngineError> {
        self.receiver.receive().await
    }

    pub(crate) async fn answer(&mut self) -> Result<Event, EngineError> {
        self.receiver.answer().await
    }

    /// Ends the connection so that what was sent last arrives: a socket that is closed while the peer still sends would throw it away.
    pub(crate) async fn close(mut self) {
        let draining = async {
            self.sender.write.shutdown().await?;
            let mut left = LINGER_BYTES;
            let mut rest = [0; 4096];
            while left > 0 {
                match self.receiver.read.read(&mut rest).await? {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            io::Result::Ok(())
        };
        // A peer that is gone, or does not stop, has had its chance.
        drop(timeout(LINGER, draining).await);
    }

    pub(crate) fn into_split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }
}

async fn open(address: &Address, at: &str) -> io::Result<Connection> {
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            // Events are small and somebody waits for each.
            stream.set_nodelay(true)?;
            let (read, write) = stream.into_split();
            Ok(Connection::over(read, write, at))
        }
        Address::Unix(path) => {
            let (read, write) = UnixStream::connect(path).await?.into_split();
            Ok(Connection::over(read, write, at))
        }
    }
}

pub(crate) struct Sender {
    write: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    at: String,
}

impl Sender {
    /// Sends an event. A peer that does not take it within ten seconds is given up. Do not go on after an error, nor after the
    /// call was dropped: half of the event may be on its way.
    pub(crate) async fn send(&mut self, event: &Event) -> Result<(), EngineError> {
        let mut bytes = BytesMut::new();
        event
            .to_frame()
            .and_then(|frame| encode(&frame, &mut bytes))
            .map_err(|error| protocol(&self.at, &error))?;
        match timeout(SEND, self.write.write_all(&bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(broken(&self.at, &error)),
            Err(_) => Err(EngineError::timed_out(&self.at, SEND)),
        }
    }
}

pub(crate) struct Receiver {
    read: Box<dyn AsyncRead + Send + Sync + Unpin>,
    decoder: Decoder,
    /// Since when an event is incomplete.
    begun: Option<Instant>,
    at: String,
}

impl Receiver {
    /// The next event, or `None` when the peer has closed the connection between two events. It waits as long as the peer is
    /// silent, but an event that has begun must be complete within ten seconds. May be dropped and called again: nothing is lost.
    pub(crate) async fn receive(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => {
                    self.begun = None;
                    let event = Event::try_from(frame);
                    return event.map(Some).map_err(|error| protocol(&self.at, &error));
                }
                Ok(None) => {}
                Err(error) => return Err(protocol(&self.at, &error)),
            }
            if self.read().await? == 0 {
                return match self.decoder.is_within() {
                    true => Err(EngineError::closed(&self.at)),
                    false => Ok(None),
                };
            }
        }
    }

    /// The next event of a peer that has yet to answer: its `error` and the end of the connection are errors.
    pub(crate) async fn answer(&mut self) -> Result<Event, EngineError> {
        match self.receive().await? {
            Some(Event::Error { text, .. }) => Err(EngineError::Refused {
                at: self.at.clone(),
                text: excerpt(&text),
            }),
            Some(event) => Ok(event),
            None => Err(EngineError::closed(&self.at)),
        }
    }

    async fn read(&mut self) -> Result<usize, EngineError> {
        let within = self.decoder.is_within();
        let space = self.decoder.space();
        space.reserve(READ);
        let reading = self.read.read_buf(space);
        let read = if within {
            let begun = *self.begun.get_or_insert_with(Instant::now);
            let read = timeout_at(begun + ARRIVE, reading).await;
            read.map_err(|_| EngineError::timed_out(&self.at, ARRIVE))?
        } else {
            reading.await
        };
        read.map_err(|error| broken(&self.at, &error))
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({})", self.at)
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({})", self.at)
    }
}

pub(crate) async fn describe(address: &Address, within: Duration) -> Result<Info, EngineError> {
    let asking = async {
        let mut connection = Connection::connect(address, within).await?;
        connection.send(&Event::Describe).await?;
        loop {
            if let Event::Info(info) = connection.answer().await? {
                return Ok(*info);
            }
        }
    };
    engine::within(within, address, asking).await
}

fn protocol(at: &str, error: &FrameError) -> EngineError {
    EngineError::protocol(at, error.to_string())
}

/// A connection that breaks is closed, whatever the system calls it.
fn broken(at: &str, error: &io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => EngineError::closed(at),
        _ => EngineError::Unreachable {
            at: at.to_owned(),
            why: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests;
