//! Splits an untrusted byte stream into MQTT packets.

use bytes::{Buf, Bytes, BytesMut};
use mqtt5_protocol::{FixedHeader, MqttError, Packet, PacketType};
use tokio::io::{AsyncRead, AsyncReadExt};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PacketFrame {
    /// The first byte, and the content after the length.
    Packet { first: u8, body: Bytes },
    /// A message over the limit, which was skipped without being held in memory. With QoS 1 it
    /// must still be acknowledged.
    TooLarge { size: usize, id: Option<u16> },
}

#[derive(Debug)]
pub(crate) enum StreamEndError {
    Closed,
    /// Contains the first two bytes that are not MQTT.
    NotMqtt([u8; 2]),
}

#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    pub(crate) max_packet: usize,
    skipping: Option<SkippedPacket>,
}

#[derive(Debug)]
struct SkippedPacket {
    size: usize,
    left: usize,
    id: Option<u16>,
}

pub(crate) fn decode(first: u8, mut body: Bytes, version: u8) -> mqtt5_protocol::Result<Packet> {
    let number = first >> 4;
    let kind = PacketType::from_u8(number).ok_or(MqttError::InvalidPacketType(number))?;
    let size = u32::try_from(body.remaining()).unwrap_or(u32::MAX);
    let header = FixedHeader::new(kind, first & 0x0f, size);
    Packet::decode_from_body_with_version(kind, &header, &mut body, version)
}

const PUBLISH: u8 = 3;
const CHUNK: usize = 16 * 1024;
// Smaller packets are copied, so that a retained message does not keep the memory of its
// neighbors.
const COPY_BELOW: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(stream: R, max_packet: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            max_packet,
            skipping: None,
        }
    }

    /// Cancel safe: no bytes are lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<PacketFrame, StreamEndError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(frame);
            }
            // Reserves for what has arrived rather than for the announced size, which may be a lie.
            self.buffer.reserve(CHUNK);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(StreamEndError::Closed),
                Ok(_) => {}
            }
        }
    }

    fn take_frame(&mut self) -> Result<Option<PacketFrame>, StreamEndError> {
        if self.skipping.is_some() {
            return Ok(self.skip());
        }
        let Some((header, size)) = self.header()? else {
            return Ok(None);
        };
        if size > self.max_packet {
            return self.begin_skipping(header, size);
        }
        if self.buffer.len() < header + size {
            return Ok(None);
        }
        let first = self.buffer[0];
        self.buffer.advance(header);
        let body = if size <= COPY_BELOW {
            let body = Bytes::copy_from_slice(&self.buffer[..size]);
            self.buffer.advance(size);
            body
        } else {
            let body = self.buffer.split_to(size).freeze();
            // The remaining bytes must not keep the large packet's memory alive.
            self.buffer = BytesMut::from(&self.buffer[..]);
            body
        };
        Ok(Some(PacketFrame::Packet { first, body }))
    }

    fn header(&self) -> Result<Option<(usize, usize)>, StreamEndError> {
        let Some(first) = self.buffer.first() else {
            return Ok(None);
        };
        if !(1..=15).contains(&(first >> 4)) {
            return Err(self.not_mqtt());
        }
        let mut size = 0;
        for (index, byte) in self.buffer.iter().skip(1).take(4).enumerate() {
            size |= usize::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(Some((index + 2, size)));
            }
        }
        if self.buffer.len() >= 5 {
            Err(self.not_mqtt())
        } else {
            Ok(None)
        }
    }

    fn begin_skipping(
        &mut self,
        header: usize,
        size: usize,
    ) -> Result<Option<PacketFrame>, StreamEndError> {
        let first = self.buffer[0];
        // Only messages are legitimately large; any other packet of this size is garbage.
        if first >> 4 != PUBLISH {
            return Err(self.not_mqtt());
        }
        let mut id = None;
        let mut read = header;
        if first & 0b110 != 0 {
            let Some(length) = self.number(header) else {
                return Ok(None);
            };
            let Some(number) = self.number(header + 2 + length) else {
                return Ok(None);
            };
            id = u16::try_from(number).ok();
            read = header + 4 + length;
        }
        let left = (header + size).saturating_sub(read);
        self.buffer.advance(read);
        self.skipping = Some(SkippedPacket { size, left, id });
        Ok(self.skip())
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.buffer.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    fn skip(&mut self) -> Option<PacketFrame> {
        let skipping = self.skipping.as_mut()?;
        let here = skipping.left.min(self.buffer.len());
        self.buffer.advance(here);
        skipping.left -= here;
        if skipping.left > 0 {
            return None;
        }
        let SkippedPacket { size, id, .. } = self.skipping.take()?;
        Some(PacketFrame::TooLarge { size, id })
    }

    pub(crate) fn partial_start(&self) -> Option<[u8; 2]> {
        (!self.buffer.is_empty()).then(|| self.start())
    }

    fn not_mqtt(&self) -> StreamEndError {
        StreamEndError::NotMqtt(self.start())
    }

    fn start(&self) -> [u8; 2] {
        let byte = |index: usize| self.buffer.get(index).copied().unwrap_or_default();
        [byte(0), byte(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], most: usize) -> (Vec<PacketFrame>, StreamEndError) {
        let mut frames = FrameReader::new(bytes, most);
        let mut got = Vec::new();
        loop {
            match frames.next().await {
                Ok(frame) => got.push(frame),
                Err(error) => return (got, error),
            }
        }
    }

    #[tokio::test]
    async fn packets_are_found_however_the_bytes_are_split() {
        let bytes = [
            &[0x40, 2, 0, 7][..],
            &[0x30, 0x80, 0x01][..],
            &[9; 128],
            &[0xd0, 0],
        ]
        .concat();
        let expected = [(0x40, vec![0, 7]), (0x30, vec![9; 128]), (0xd0, vec![])];
        for piece in 1..bytes.len() {
            let mut stream = tokio_util::io::StreamReader::new(futures::stream::iter(
                bytes
                    .chunks(piece)
                    .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))),
            ));
            let mut frames = FrameReader::new(&mut stream, 1000);
            for (first, body) in &expected {
                let PacketFrame::Packet { first: f, body: b } = frames.next().await.unwrap() else {
                    panic!("a packet");
                };
                assert_eq!((f, &b[..]), (*first, &body[..]), "in pieces of {piece}");
            }
            assert!(matches!(frames.next().await, Err(StreamEndError::Closed)));
        }
    }

    #[tokio::test]
    async fn an_oversized_message_is_skipped() {
        // QoS 1, topic "ab", id 0x0102, 300 bytes in all.
        let mut bytes = vec![0x32, 0xac, 0x02, 0, 2, b'a', b'b', 1, 2];
        bytes.resize(3 + 300, 0xee);
        bytes.extend([0xd0, 0]);
        let (got, error) = all(&bytes, 299).await;
        let large = PacketFrame::TooLarge {
            size: 300,
            id: Some(0x0102),
        };
        let next = PacketFrame::Packet {
            first: 0xd0,
            body: Bytes::new(),
        };
        assert_eq!(got, [large, next]);
        assert!(matches!(error, StreamEndError::Closed));
    }

    #[tokio::test]
    async fn bytes_that_are_not_mqtt_are_rejected_at_once() {
        for bytes in [
            &[0x00, 0x00][..],
            &[0x30, 0xff, 0xff, 0xff, 0xff, 0x01],
            // An acknowledgement of 256 MB.
            &[0x40, 0xff, 0xff, 0xff, 0x7f],
        ] {
            let (got, error) = all(bytes, 1000).await;
            assert!(
                got.is_empty() && matches!(error, StreamEndError::NotMqtt(_)),
                "{bytes:?}: {error:?}"
            );
        }
    }
}
