//! Wyoming connections, for clients and servers.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

use super::frame::excerpt;
use super::{FrameDecoder, FrameError, ServiceInfo, WyomingAddress, WyomingEvent, encode};
use crate::{EngineError, engine};

const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an event may take to arrive, from its first byte.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long, and for how many bytes, to keep reading from a peer after closing.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 4 << 20;
const READ_BUFFER_LEN: usize = 16 << 10;

pub(crate) struct WyomingConnection {
    sender: EventSender,
    receiver: EventReceiver,
}

impl WyomingConnection {
    pub(crate) async fn connect(
        address: &WyomingAddress,
        within: Duration,
    ) -> Result<Self, EngineError> {
        let at = address.to_string();
        match timeout(within, open_stream(address, &at)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(EngineError::Unreachable {
                at,
                why: error.to_string(),
            }),
            Err(_) => Err(EngineError::timed_out(at, within)),
        }
    }

    pub(crate) fn from_streams(
        read: impl AsyncRead + Send + Sync + Unpin + 'static,
        write: impl AsyncWrite + Send + Sync + Unpin + 'static,
        at: &str,
    ) -> Self {
        Self {
            sender: EventSender {
                write: Box::new(write),
                at: at.to_owned(),
            },
            receiver: EventReceiver {
                read: Box::new(read),
                decoder: FrameDecoder::default(),
                frame_started: None,
                at: at.to_owned(),
            },
        }
    }

    pub(crate) async fn send(&mut self, event: &WyomingEvent) -> Result<(), EngineError> {
        self.sender.send(event).await
    }

    pub(crate) async fn receive(&mut self) -> Result<Option<WyomingEvent>, EngineError> {
        self.receiver.receive().await
    }

    pub(crate) async fn receive_answer(&mut self) -> Result<WyomingEvent, EngineError> {
        self.receiver.receive_answer().await
    }

    /// Closes so that the last event arrives: closing a socket while the peer still sends would
    /// reset the connection and lose it.
    pub(crate) async fn close(mut self) {
        let draining = async {
            self.sender.write.shutdown().await?;
            let mut left = MAX_LINGER_BYTES;
            let mut rest = [0; 4096];
            while left > 0 {
                match self.receiver.read.read(&mut rest).await? {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            io::Result::Ok(())
        };
        // A peer that is gone or never stops sending is cut off.
        drop(timeout(LINGER_TIMEOUT, draining).await);
    }

    pub(crate) fn into_split(self) -> (EventSender, EventReceiver) {
        (self.sender, self.receiver)
    }
}

async fn open_stream(address: &WyomingAddress, at: &str) -> io::Result<WyomingConnection> {
    match address {
        WyomingAddress::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            // Events are small, and somebody waits for each of them.
            stream.set_nodelay(true)?;
            let (read, write) = stream.into_split();
            Ok(WyomingConnection::from_streams(read, write, at))
        }
        WyomingAddress::Unix(path) => {
            let (read, write) = UnixStream::connect(path).await?.into_split();
            Ok(WyomingConnection::from_streams(read, write, at))
        }
    }
}

pub(crate) struct EventSender {
    write: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    at: String,
}

impl EventSender {
    /// Sends an event within ten seconds. After an error or a dropped call the connection can't be
    /// used any more, because half of the event may have been sent.
    pub(crate) async fn send(&mut self, event: &WyomingEvent) -> Result<(), EngineError> {
        let mut bytes = BytesMut::new();
        event
            .to_frame()
            .and_then(|frame| encode(&frame, &mut bytes))
            .map_err(|error| frame_error(&self.at, &error))?;
        match timeout(SEND_TIMEOUT, self.write.write_all(&bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(io_error(&self.at, &error)),
            Err(_) => Err(EngineError::timed_out(&self.at, SEND_TIMEOUT)),
        }
    }
}

pub(crate) struct EventReceiver {
    read: Box<dyn AsyncRead + Send + Sync + Unpin>,
    decoder: FrameDecoder,
    frame_started: Option<Instant>,
    at: String,
}

impl EventReceiver {
    /// The next event, or `None` if the peer closed the connection between events. Waits for as
    /// long as the peer is silent, but an event must be complete within ten seconds of its
    /// first byte. Cancel safe.
    pub(crate) async fn receive(&mut self) -> Result<Option<WyomingEvent>, EngineError> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => {
                    self.frame_started = None;
                    let event = WyomingEvent::try_from(frame).map(Some);
                    return event.map_err(|error| frame_error(&self.at, &error));
                }
                Ok(None) => {}
                Err(error) => return Err(frame_error(&self.at, &error)),
            }
            if self.read().await? == 0 {
                return match self.decoder.is_mid_frame() {
                    true => Err(EngineError::closed(&self.at)),
                    false => Ok(None),
                };
            }
        }
    }

    /// The next event of a peer that owes an answer: `error` and the end of
    /// the connection are errors.
    pub(crate) async fn receive_answer(&mut self) -> Result<WyomingEvent, EngineError> {
        match self.receive().await? {
            Some(WyomingEvent::Error { text, .. }) => Err(EngineError::Refused {
                at: self.at.clone(),
                text: excerpt(&text),
            }),
            Some(event) => Ok(event),
            None => Err(EngineError::closed(&self.at)),
        }
    }

    async fn read(&mut self) -> Result<usize, EngineError> {
        let within = self.decoder.is_mid_frame();
        let buffer = self.decoder.read_buffer();
        buffer.reserve(READ_BUFFER_LEN);
        let reading = self.read.read_buf(buffer);
        let read = match within {
            true => {
                let frame_started = *self.frame_started.get_or_insert_with(Instant::now);
                let read = timeout_at(frame_started + ARRIVAL_TIMEOUT, reading).await;
                read.map_err(|_| EngineError::timed_out(&self.at, ARRIVAL_TIMEOUT))?
            }
            false => reading.await,
        };
        read.map_err(|error| io_error(&self.at, &error))
    }
}

pub(crate) async fn describe(
    address: &WyomingAddress,
    within: Duration,
) -> Result<ServiceInfo, EngineError> {
    let asking = async {
        let mut connection = WyomingConnection::connect(address, within).await?;
        connection.send(&WyomingEvent::Describe).await?;
        loop {
            if let WyomingEvent::Info(info) = connection.receive_answer().await? {
                return Ok(*info);
            }
        }
    };
    engine::with_deadline(within, address, asking).await
}

fn frame_error(at: &str, error: &FrameError) -> EngineError {
    EngineError::protocol(at, error)
}

// Systems report a broken connection in several ways.
fn io_error(at: &str, error: &io::Error) -> EngineError {
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
