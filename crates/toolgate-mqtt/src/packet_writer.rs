//! A buffered packet writer that knows which packets were written to the network.

use std::io;

use bytes::{BufMut, BytesMut};
use mqtt5_protocol::packet::MqttPacket;
use tokio::io::{AsyncWrite, AsyncWriteExt};

pub(crate) struct PacketWriter<W> {
    writer: W,
    bytes: BytesMut,
    unflushed: bool,
    // Both in bytes since the start.
    queued: u64,
    written: u64,
}

/// The packet id after `last` that is not in use. Fewer than 65535 are in use at any time.
pub(crate) fn next_packet_id(last: &mut u16, is_used: impl Fn(u16) -> bool) -> u16 {
    loop {
        *last = last.checked_add(1).unwrap_or(1);
        if !is_used(*last) {
            return *last;
        }
    }
}

/// With this many bytes in the buffer, reading and sending pause.
const MAX_BUFFERED: usize = 256 * 1024;

impl<W: AsyncWrite + Unpin> PacketWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            bytes: BytesMut::new(),
            unflushed: false,
            queued: 0,
            written: 0,
        }
    }

    /// Queues a packet. Returns the position of its end, for `has_sent`.
    pub(crate) fn write_packet(&mut self, packet: &impl MqttPacket) -> u64 {
        let before = self.bytes.len();
        if packet.encode(&mut self.bytes).is_err() {
            // Can't happen, because topics are checked before.
            self.bytes.truncate(before);
        }
        self.queued += (self.bytes.len() - before) as u64;
        self.queued
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
        self.queued += bytes.len() as u64;
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.unflushed || !self.bytes.is_empty()
    }

    /// One write or flush. Cancel safe.
    pub(crate) async fn flush_step(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.writer.flush().await?;
            self.unflushed = false;
            return Ok(());
        }
        let written = self.writer.write_buf(&mut self.bytes).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written as u64;
        self.unflushed = true;
        Ok(())
    }

    pub(crate) fn has_sent(&self, end: u64) -> bool {
        self.written >= end
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_BUFFERED
    }

    pub(crate) fn unsent_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        while self.is_busy() {
            self.flush_step().await?;
        }
        self.writer.shutdown().await
    }
}
