//! Bytes on their way out.

use std::io;

use bytes::{BufMut, BytesMut};
use mqtt5::packet::MqttPacket;
use tokio::io::AsyncWriteExt;

use super::dial::Writer;

/// Bytes on their way out.
pub(super) struct Out {
    writer: Writer,
    bytes: BytesMut,
    unflushed: bool,
    /// How many bytes were ever given to it, and how many of them the network has taken.
    given: u64,
    taken: u64,
}

/// With so much on its way out nothing more is read or taken on.
const FULL: usize = 256 * 1024;

impl Out {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer,
            bytes: BytesMut::new(),
            unflushed: false,
            given: 0,
            taken: 0,
        }
    }

    /// Where it ends.
    pub(super) fn packet(&mut self, packet: &impl MqttPacket) -> u64 {
        let before = self.bytes.len();
        if packet.encode(&mut self.bytes).is_err() {
            // Nothing of ours is unencodable: topics are checked before.
            self.bytes.truncate(before);
        }
        self.given += (self.bytes.len() - before) as u64;
        self.given
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
        self.given += bytes.len() as u64;
    }

    pub(super) fn is_busy(&self) -> bool {
        self.unflushed || !self.bytes.is_empty()
    }

    /// One step. Nothing is lost if it is given up half way.
    pub(super) async fn push(&mut self) -> io::Result<()> {
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
    pub(super) fn has_taken(&self, end: u64) -> bool {
        self.taken >= end
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}
