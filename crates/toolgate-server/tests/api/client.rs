//! A small HTTP client that checks answers against the OpenAPI document.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// Ten times what any test here takes.
pub(crate) const HANG: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct ApiReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl ApiReply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The detail of a problem; panics if it is not one.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// Sends one request on a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> http::Response<Incoming> {
    let socket = TcpSocket::new_v4().unwrap();
    // So that a reader that does not read is noticed soon.
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address.to_string());
    for (name, value) in headers {
        request = request.header(*name, value.as_bytes());
    }
    let request = request.body(Full::new(body.into())).unwrap();
    tokio::time::timeout(HANG, sender.send_request(request))
        .await
        .unwrap()
        .unwrap()
}

pub(crate) async fn whole(response: http::Response<Incoming>) -> ApiReply {
    let (parts, body) = response.into_parts();
    let body = tokio::time::timeout(HANG, body.collect())
        .await
        .unwrap()
        .unwrap();
    ApiReply {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(body.to_bytes().to_vec()).unwrap(),
    }
}

/// Server-sent events as they come.
pub(crate) struct ApiEvents {
    body: Incoming,
    text: String,
}

impl ApiEvents {
    pub(crate) fn of(response: http::Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// The next event's name, id and data; none at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, String, Value)> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines
                        .find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned))
                };
                if let Some(data) = field("data") {
                    let data = serde_json::from_str(&data).unwrap();
                    return Some((
                        field("event").unwrap(),
                        field("id").unwrap_or_default(),
                        data,
                    ));
                }
                assert!(block.starts_with(':'), "{block}");
            }
            let frame = tokio::time::timeout(HANG, self.body.frame())
                .await
                .unwrap()?;
            let bytes = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// The data of the next event of this name.
    pub(crate) async fn expect(&mut self, name: &str) -> Value {
        loop {
            let (found, _, data) = self
                .next()
                .await
                .unwrap_or_else(|| panic!("no {name} came"));
            if found == name {
                return data;
            }
        }
    }

    /// All events until the end.
    pub(crate) async fn rest(&mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some((name, _, data)) = self.next().await {
            all.push((name, data));
        }
        all
    }
}

/// Panics if an answer is not one that the document describes.
pub(crate) fn expect_described(document: &Value, method: &Method, path: &str, reply: &ApiReply) {
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(document, method, path) else {
        assert!(
            matches!(reply.status.as_u16(), 404 | 405),
            "{method} {path} is not described"
        );
        return;
    };
    let at = format!("{method} {path} {}", reply.status);
    let response = &operation["responses"][reply.status.as_str()];
    assert!(
        response.is_object(),
        "{at} is not described: {}",
        reply.text
    );
    let kind = reply.header("content-type").split(';').next().unwrap();
    if !kind.ends_with("json") {
        return;
    }
    let schema = &response["content"][kind]["schema"];
    assert!(
        schema.is_object(),
        "{at}: {kind} is not described: {response}"
    );
    let problems = problems(document, schema, &reply.json());
    assert!(problems.is_empty(), "{at}: {problems:?} in {}", reply.text);
    expect_known_keys(document, schema, &reply.json(), &at);
}

fn operation<'d>(document: &'d Value, method: &Method, path: &str) -> Option<&'d Value> {
    let fits = |template: &str| {
        let (mut parts, mut given) = (template.split('/'), path.split('/'));
        let same = parts
            .by_ref()
            .zip(given.by_ref())
            .all(|(part, given)| part == given || part.starts_with('{'));
        same && template.split('/').count() == path.split('/').count()
    };
    let paths = document["paths"].as_object().unwrap();
    let item = paths.get(path).or_else(|| {
        let mut templates = paths.iter().filter(|(template, _)| fits(template));
        templates.next().map(|(_, item)| item)
    })?;
    item.get(method.as_str().to_lowercase())
}

/// The violations of a schema of the document.
pub(crate) fn problems(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator
        .iter_errors(value)
        .map(|error| format!("{} {error}", error.instance_path()))
        .collect()
}

/// Panics at a key that the document does not know.
fn expect_known_keys(document: &Value, schema: &Value, value: &Value, at: &str) {
    let mut properties = serde_json::Map::new();
    let mut left = vec![schema];
    let mut items = None;
    while let Some(schema) = left.pop() {
        if let Some(reference) = schema["$ref"].as_str() {
            left.push(
                document
                    .pointer(reference.strip_prefix('#').unwrap())
                    .unwrap(),
            );
        }
        left.extend(schema["allOf"].as_array().into_iter().flatten());
        // An object, or nothing.
        left.extend(schema["oneOf"].as_array().into_iter().flatten());
        properties.extend(
            schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        items = items.or_else(|| schema.get("items"));
    }
    match value {
        Value::Array(array) => {
            for value in array {
                if let Some(items) = items {
                    expect_known_keys(document, items, value, at);
                }
            }
        }
        Value::Object(object) if !properties.is_empty() => {
            for (key, value) in object {
                let schema = properties.get(key);
                let schema = schema.unwrap_or_else(|| panic!("{at}: '{key}' is not described"));
                expect_known_keys(document, schema, value, at);
            }
        }
        _ => {}
    }
}
