//! A simple codec for Wyoming events, separate from the one under test.

use std::io;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// An event that a fake server received.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedEvent {
    pub kind: String,
    /// The data, `{}` if there was none.
    pub data: Value,
    pub payload: Vec<u8>,
}

/// Reads one event; `None` at the end of the connection.
pub(crate) async fn read_event(
    stream: &mut BufReader<impl AsyncRead + Unpin>,
) -> io::Result<Option<ReceivedEvent>> {
    let mut line = Vec::new();
    if stream.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    let header: Value = serde_json::from_slice(&line)?;
    let kind = header["type"].as_str().ok_or(io::ErrorKind::InvalidData)?;
    let mut data = header["data"].as_object().cloned().unwrap_or_default();
    let extra = read_block(stream, &header["data_length"]).await?;
    if !extra.is_empty() {
        data.extend(serde_json::from_slice::<Map<String, Value>>(&extra)?);
    }
    let payload = read_block(stream, &header["payload_length"]).await?;
    Ok(Some(ReceivedEvent {
        kind: kind.to_owned(),
        data: Value::Object(data),
        payload,
    }))
}

async fn read_block(stream: &mut (impl AsyncRead + Unpin), length: &Value) -> io::Result<Vec<u8>> {
    let mut block = Vec::new();
    let length = length.as_u64().unwrap_or(0);
    stream.take(length).read_to_end(&mut block).await?;
    match block.len() as u64 == length {
        true => Ok(block),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub(crate) fn encode_event(kind: &str, data: &Value, payload: &[u8]) -> Vec<u8> {
    let block = match data {
        Value::Object(object) if object.is_empty() => String::new(),
        data => data.to_string(),
    };
    let header = json!({
        "type": kind,
        "version": "1.9.0",
        "data_length": block.len(),
        "payload_length": payload.len(),
    });
    let mut bytes = format!("{header}\n{block}").into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes audio as events: a start, chunks of `chunk_bytes` bytes, a stop.
pub(crate) fn encode_audio(rate: u32, pcm: &[u8], chunk_bytes: usize) -> Vec<Vec<u8>> {
    let format = audio_format(rate);
    let mut events = vec![encode_event("audio-start", &format, &[])];
    events.extend(encode_chunks(rate, pcm, chunk_bytes));
    events.push(encode_event(
        "audio-stop",
        &json!({ "timestamp": null }),
        &[],
    ));
    events
}

/// Encodes audio as chunks without a stop.
pub(crate) fn encode_chunks(rate: u32, pcm: &[u8], chunk_bytes: usize) -> Vec<Vec<u8>> {
    let format = audio_format(rate);
    pcm.chunks(chunk_bytes)
        .map(|piece| encode_event("audio-chunk", &format, piece))
        .collect()
}

pub(crate) fn audio_format(rate: u32) -> Value {
    json!({ "rate": rate, "width": 2, "channels": 1, "timestamp": 0 })
}

pub(crate) fn pcm_bytes(samples: &[i16]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect()
}

/// Builds one entry of an `info` event: the required fields plus `more`.
pub(crate) fn info_entry(name: &str, more: Value) -> Value {
    let mut entry = json!({
        "name": name,
        "attribution": { "name": "tests", "url": "" },
        "installed": true,
        "description": name,
        "version": "1",
    });
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
        entry.extend(more);
    }
    entry
}
