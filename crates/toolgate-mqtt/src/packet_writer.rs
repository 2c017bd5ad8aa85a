//! A buffered packet writer that knows which packets were written to the network.

use std::io;

use bytes::{BufMut, BytesMut};
use mqtt5_protocol::packet::MqttPacket;
use tokio::io::{AsyncWrite, AsyncWriteExt};

pub(crate) struct PacketWriter<W> {
    writer: W,
    bytes: BytesMut,
    is_unflushed: bool,
    // Stream offsets: bytes queued, and bytes handed to the transport.
    queued: u64,
    written: u64,
}

/// With this many bytes in the buffer, reading and sending pause.
const MAX_BUFFERED: usize = 256 * 1024;

impl<W: AsyncWrite + Unpin> PacketWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            bytes: BytesMut::new(),
            is_unflushed: false,
            queued: 0,
            written: 0,
        }
    }

    /// Returns the packet's end offset; pass it to `has_sent`.
    pub(crate) fn queue_packet(&mut self, packet: &impl MqttPacket) -> u64 {
        let before = self.bytes.len();
        if packet.encode(&mut self.bytes).is_err() {
            // Topics were validated, so encoding can't fail; if it does, the packet is dropped.
            self.bytes.truncate(before);
        }
        self.queued += (self.bytes.len() - before) as u64;
        self.queued
    }

    pub(crate) fn queue_bytes(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
        self.queued += bytes.len() as u64;
    }

    pub(crate) fn has_unflushed_data(&self) -> bool {
        self.is_unflushed || !self.bytes.is_empty()
    }

    /// Makes progress once: writes part of the buffer or, if it is empty, flushes. Cancel safe.
    pub(crate) async fn flush_step(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.writer.flush().await?;
            self.is_unflushed = false;
            return Ok(());
        }
        let written = self.writer.write_buf(&mut self.bytes).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written as u64;
        self.is_unflushed = true;
        Ok(())
    }

    /// True if the transport has taken everything up to this offset.
    pub(crate) fn has_sent(&self, end: u64) -> bool {
        self.written >= end
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_BUFFERED
    }

    pub(crate) fn unsent_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) async fn flush_and_shutdown(&mut self) -> io::Result<()> {
        while self.has_unflushed_data() {
            self.flush_step().await?;
        }
        self.writer.shutdown().await
    }
}
