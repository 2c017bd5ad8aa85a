use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::wyoming::WyomingAddress;

const PATIENCE: Duration = Duration::from_secs(30);

/// Echoes `recognize`. Hangs or panics on request.
struct EchoService;

impl WyomingService for EchoService {
    fn info(&self) -> ServiceInfo {
        let mut info = ServiceInfo::default();
        info.intent
            .push(crate::wyoming::info::ServiceProgram::default());
        info
    }

    fn serve_client<'a>(
        &'a self,
        client: &'a mut WyomingClient,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            while let Some(event) = client.receive().await? {
                match event {
                    WyomingEvent::Recognize { text } if text == "hang" => {
                        std::future::pending::<()>().await;
                    }
                    WyomingEvent::Recognize { text } if text == "panic" => panic!("as told"),
                    WyomingEvent::Recognize { text } => {
                        let text = Some(text);
                        let context = None;
                        client
                            .send(&WyomingEvent::Handled { text, context })
                            .await?;
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        .boxed()
    }
}

struct RunningServer {
    address: WyomingAddress,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl RunningServer {
    async fn start() -> Self {
        Self::at("tcp://127.0.0.1:0").await
    }

    async fn at(address: &str) -> Self {
        let server = WyomingListener::bind(&address.parse().unwrap())
            .await
            .unwrap();
        let address = server.address().clone();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.serve(Arc::new(EchoService), stop.clone()));
        Self {
            address,
            stop,
            serving,
        }
    }

    async fn client(&self) -> WyomingConnection {
        WyomingConnection::connect(&self.address, PATIENCE)
            .await
            .unwrap()
    }

    /// A client that may say anything.
    async fn raw(&self) -> TcpStream {
        let WyomingAddress::Tcp { host, port } = &self.address else {
            panic!("no port");
        };
        TcpStream::connect((host.as_str(), *port)).await.unwrap()
    }

    async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

fn ask(text: &str) -> WyomingEvent {
    WyomingEvent::Recognize {
        text: text.to_owned(),
    }
}

async fn is_answered(connection: &mut WyomingConnection) -> bool {
    connection.send(&ask("hello")).await.unwrap();
    let answer = timeout(PATIENCE, connection.receive()).await.unwrap();
    matches!(answer, Ok(Some(WyomingEvent::Handled { text, .. })) if text.as_deref() == Some("hello"))
}

#[tokio::test]
async fn ping_and_describe_are_answered_for_every_service() {
    let server = RunningServer::start().await;
    let mut client = server.client().await;
    let text = Some("still there?".to_owned());
    client
        .send(&WyomingEvent::Ping { text: text.clone() })
        .await
        .unwrap();
    assert_eq!(
        client.receive_answer().await,
        Ok(WyomingEvent::Pong { text })
    );
    client.send(&WyomingEvent::Describe).await.unwrap();
    assert_eq!(
        client.receive_answer().await,
        Ok(WyomingEvent::Info(Box::new(EchoService.info())))
    );
    assert!(is_answered(&mut client).await);
    server.end().await;
}

#[tokio::test]
async fn garbage_is_answered_with_an_error_while_others_are_served() {
    let server = RunningServer::start().await;
    let mut other = server.client().await;
    for (sent, problem) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "a header line cannot be used"),
        (vec![b'{'; 3 << 20], "a header line is longer than 65536 bytes"),
        (
            b"{\"type\": \"audio-chunk\", \"payload_length\": 1099511627776}\n".to_vec(),
            "1099511627776 bytes of payload",
        ),
        (
            b"{\"type\": \"audio-start\", \"data\": {\"rate\": 0, \"width\": 2, \"channels\": 1}}\n".to_vec(),
            "sound at 0 Hz cannot be used",
        ),
    ] {
        let stream = server.raw().await;
        let (mut read, mut write) = stream.into_split();
        // The server may hang up before everything is sent.
        let sending = tokio::spawn(async move { write.write_all(&sent).await });
        let mut answer = String::new();
        let reading = read.read_to_string(&mut answer);
        timeout(PATIENCE, reading).await.unwrap().unwrap();
        assert!(answer.contains(problem), "{answer}");
        assert!(answer.starts_with("{\"type\": \"error\""), "{answer}");
        drop(sending.await);
        assert!(is_answered(&mut other).await);
    }
    server.end().await;
}

#[tokio::test]
async fn panicking_service_loses_only_its_own_connection() {
    let server = RunningServer::start().await;
    let (mut one, mut other) = (server.client().await, server.client().await);
    one.send(&ask("panic")).await.unwrap();
    assert!(matches!(
        one.receive().await,
        Ok(None) | Err(EngineError::Closed { .. })
    ));
    assert!(is_answered(&mut other).await);
    server.end().await;
}

#[tokio::test]
async fn up_to_64_clients_are_served_at_once() {
    let server = RunningServer::start().await;
    let mut guests = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut client = server.client().await;
        assert!(is_answered(&mut client).await);
        guests.push(client);
    }
    let error = server
        .client()
        .await
        .receive_answer()
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("too many connections"), "{error}");
    assert!(is_answered(&mut guests[0]).await);
    guests.pop();
    let mut latecomer = loop {
        // The server notices a moment later.
        let mut client = server.client().await;
        if client.send(&ask("hello")).await.is_ok() && client.receive_answer().await.is_ok() {
            break client;
        }
    };
    assert!(is_answered(&mut latecomer).await);
    server.end().await;
}

/// A client over a stream in memory, so that time can be paused.
fn hosted() -> (tokio::io::DuplexStream, CancellationToken, JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (read, write) = tokio::io::split(ours);
    let connection = WyomingConnection::from_streams(read, write, "tcp://client:1");
    let stop = CancellationToken::new();
    let hosting = tokio::spawn(run_connection(
        connection,
        Arc::new(EchoService),
        stop.clone(),
    ));
    (theirs, stop, hosting)
}

async fn rest_of(mut stream: tokio::io::DuplexStream) -> String {
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    rest
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_closed_after_a_minute() {
    let (client, _stop, hosting) = hosted();
    let before = Instant::now();
    assert_eq!(rest_of(client).await, "");
    assert_eq!(before.elapsed(), IDLE_TIMEOUT);
    hosting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_that_stalls_within_an_event_is_closed_with_an_error() {
    // Either way it is within the first event.
    for blanks in [usize::MAX, 0] {
        let (client, _stop, hosting) = hosted();
        let (mut read, mut write) = tokio::io::split(client);
        let before = Instant::now();
        let dripping = tokio::spawn(async move {
            write.write_all(b"{").await?;
            for _ in 0..blanks {
                tokio::time::sleep(Duration::from_millis(900)).await;
                write.write_all(b" ").await?;
            }
            std::future::pending::<io::Result<()>>().await
        });
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("the event took too long"), "{answer}");
        assert!(before.elapsed() < IDLE_TIMEOUT);
        hosting.await.unwrap();
        dripping.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_closed() {
    let (mut client, _stop, hosting) = hosted();
    let question = b"{\"type\": \"recognize\", \"data\": {\"text\": \"hello\"}}\n";
    while !hosting.is_finished() {
        // The connection may be closed in the middle of this.
        drop(timeout(Duration::from_secs(1), client.write_all(question)).await);
    }
    hosting.await.unwrap();
}

#[tokio::test]
async fn half_closed_client_still_gets_its_answer() {
    let server = RunningServer::start().await;
    let mut client = server.raw().await;
    let question = b"{\"type\": \"recognize\", \"data\": {\"text\": \"hello\"}}\n";
    client.write_all(question).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("{\"text\": \"hello\"}"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn shutdown_closes_every_connection_even_a_hanging_one() {
    let server = RunningServer::start().await;
    let (mut idle, mut hanging) = (server.client().await, server.client().await);
    assert!(is_answered(&mut idle).await && is_answered(&mut hanging).await);
    hanging.send(&ask("hang")).await.unwrap();
    server.stop.cancel();
    timeout(PATIENCE, server.serving).await.unwrap().unwrap();
    assert_eq!(idle.receive().await, Ok(None));
    assert!(matches!(
        hanging.receive().await,
        Ok(None) | Err(EngineError::Closed { .. })
    ));
    WyomingConnection::connect(&server.address, PATIENCE)
        .await
        .err()
        .unwrap();
}

#[tokio::test]
async fn socket_file_is_replaced_only_if_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wyoming.sock");
    let text = format!("unix://{}", path.display());
    let address: WyomingAddress = text.parse().unwrap();
    // A killed program leaves its socket file.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = RunningServer::at(&text).await;
    assert!(is_answered(&mut server.client().await).await);
    let error = WyomingListener::bind(&address).await.unwrap_err();
    let expected = format!("cannot listen on {text}: another program is already listening there");
    assert_eq!(error.to_string(), expected);
    server.end().await;
    assert!(!path.exists());
    // Only sockets may be removed.
    std::fs::write(&path, "letters").unwrap();
    WyomingListener::bind(&address).await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "letters");
}

#[tokio::test]
async fn port_in_use_is_reported() {
    let server = RunningServer::start().await;
    let error = WyomingListener::bind(&server.address).await.unwrap_err();
    let expected = "another program is already listening there";
    assert!(error.to_string().ends_with(expected), "{error}");
    server.end().await;
}
