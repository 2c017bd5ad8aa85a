//! Bytes on their way out.

use std::io;

use bytes::{BufMut, BytesMut};
use mqtt5_protocol::packet::MqttPacket;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Bytes on their way out.
pub(crate) struct Out<W> {
    writer: W,
    bytes: BytesMut,
    unflushed: bool,
    /// How many bytes were ever given to it, and how many of them the network has taken.
    given: u64,
    taken: u64,
}

/// With so much on its way out nothing more is read or taken on.
const FULL: usize = 256 * 1024;

impl<W: AsyncWrite + Unpin> Out<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            bytes: BytesMut::new(),
            unflushed: false,
            given: 0,
            taken: 0,
        }
    }

    /// Where it ends.
    pub(crate) fn packet(&mut self, packet: &impl MqttPacket) -> u64 {
        let before = self.bytes.len();
        if packet.encode(&mut self.bytes).is_err() {
            // Nothing of ours is unencodable: topics are checked before.
            self.bytes.truncate(before);
        }
        self.given += (self.bytes.len() - before) as u64;
        self.given
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
        self.given += bytes.len() as u64;
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.unflushed || !self.bytes.is_empty()
    }

    /// One step. Nothing is lost if it is given up half way.
    pub(crate) async fn push(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.writer.flush().await?;
            self.unflushed = false;
            return Ok(());
        }
        let taken = self.writer.write_buf(&mut self.bytes).await?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.taken += taken as u64;
        self.unflushed = true;
        Ok(())
    }

    /// True if the network has taken everything up to here.
    pub(crate) fn has_taken(&self, end: u64) -> bool {
        self.taken >= end
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// How many bytes the network has not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Sends what is left, then closes.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        while self.is_busy() {
            self.push().await?;
        }
        self.writer.shutdown().await
    }
}
