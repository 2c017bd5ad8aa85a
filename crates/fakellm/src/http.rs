//! A minimal HTTP/1.1 server side, so that tests see and control every byte.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Larger than any request of a test.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// In order, with lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Why the request was refused, if it was.
    pub refused: Option<String>,
}

impl RecordedRequest {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it isn't JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// The next request of a connection; `None` once the client has closed it.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<RecordedRequest>> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if !read_more(stream, buffer).await? {
            return Ok(None);
        }
    };
    let mut request = parse_head(&buffer[..head])?;
    let length = request.header("content-length").unwrap_or("0").parse();
    let length: usize = length.map_err(|_| invalid_data("content-length"))?;
    if length > MAX_BODY_BYTES || request.header("transfer-encoding").is_some() {
        return Err(invalid_data("content-length"));
    }
    while buffer.len() < head + length {
        if !read_more(stream, buffer).await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    request.body = buffer[head..head + length].to_vec();
    buffer.drain(..head + length);
    Ok(Some(request))
}

async fn read_more(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    Ok(stream.read_buf(buffer).await? > 0)
}

fn invalid_data(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse_head(head: &[u8]) -> io::Result<RecordedRequest> {
    let text = str::from_utf8(head).map_err(|_| invalid_data("head"))?;
    let mut lines = text.trim_end().split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1")) = (words.next(), words.next(), words.next())
    else {
        return Err(invalid_data("request line"));
    };
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').ok_or_else(|| invalid_data("header"))?;
        Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Ok(RecordedRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers.collect::<io::Result<_>>()?,
        body: Vec::new(),
        refused: None,
    })
}

/// The head of an answer; its body follows in chunks.
pub(crate) async fn write_head(
    stream: &mut (impl AsyncWrite + Unpin),
    status: u16,
    headers: &[(String, String)],
    content_type: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n");
    if !headers.iter().any(|(name, _)| name == "content-type") {
        head += &format!("content-type: {content_type}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await
}

/// One chunk of a body, in one write.
pub(crate) async fn write_chunk(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await?;
    stream.flush().await
}
