//! Making a connection: TCP, TLS, and the first words of MQTT.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use mqtt5_protocol::{
    ConnectProperties, PropertyId, PropertyValue, QoS, WillMessage,
    packet::{FixedHeader, MqttPacket, PacketType, connack::ConnAckPacket, connect::ConnectPacket},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::trouble::Trouble;
use crate::{
    Settings, Version,
    frames::{Frame, Frames, Torn},
};

/// The largest packet we take. A broker of MQTT 5 is told; one of 3.1.1 may send more, which is read past.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// From the first packet to the broker's first word.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The largest first word that is taken.
const LARGEST_CONNACK: usize = 64 * 1024;
/// How many publishes may wait for the broker's confirmation if it does not say itself.
const WINDOW: usize = 64;

pub(super) type Reader = Frames<ReadHalf<Box<dyn Stream>>>;
pub(super) type Writer = WriteHalf<Box<dyn Stream>>;

/// TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) struct Link {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) terms: Terms,
}

#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// 4 is MQTT 3.1.1.
    pub(super) version: u8,
    /// How many publishes may be unconfirmed at a time.
    pub(super) window: usize,
    pub(super) largest: usize,
    pub(super) retain: bool,
    /// Whether it says with a message for which filters it is.
    pub(super) names_filters: bool,
    pub(super) keep_alive: Duration,
}

/// Connects, in the newest version that both sides speak. `v3` remembers what an old broker made us do.
pub(super) async fn dial(settings: &Settings, id: &str, v3: &mut bool) -> Result<Link, Trouble> {
    let first = match settings.version {
        Version::V3 => 4,
        Version::V5 => 5,
        Version::Any => {
            if *v3 {
                4
            } else {
                5
            }
        }
    };
    let outcome = dial_as(settings, id, first).await;
    if settings.version != Version::Any || !is_unknown(&outcome) {
        return outcome;
    }
    let other = dial_as(settings, id, if first == 5 { 4 } else { 5 }).await;
    if is_unknown(&other) {
        return outcome;
    }
    *v3 = first == 5;
    other
}

/// Old brokers say that they do not know a version, or hang up at the sight of it.
fn is_unknown(outcome: &Result<Link, Trouble>) -> bool {
    matches!(outcome, Err(Trouble::Version | Trouble::HungUp))
}

async fn dial_as(settings: &Settings, id: &str, version: u8) -> Result<Link, Trouble> {
    let talking = async {
        let stream = open(settings).await?;
        greet(settings, id, version, stream).await
    };
    tokio::time::timeout(CONNECT_LIMIT, talking)
        .await
        .unwrap_or(Err(Trouble::Silent(CONNECT_LIMIT)))
}

async fn open(settings: &Settings) -> Result<Box<dyn Stream>, Trouble> {
    // Before anything is sent, so that a wrong file is named however the broker is.
    let tls = if settings.tls {
        Some(connector(settings).await?)
    } else {
        None
    };
    let place = (settings.host.as_str(), settings.port);
    let places = tokio::net::lookup_host(place)
        .await
        .map_err(|_| Trouble::NoSuchName)?;
    let mut trouble = Trouble::NoSuchName;
    for place in places {
        match TcpStream::connect(place).await {
            Ok(stream) => {
                // A switch shall not wait for more bytes to come; a failure to say so costs milliseconds at most.
                drop(stream.set_nodelay(true));
                return match tls {
                    Some(connector) => wrap(settings, &connector, stream).await,
                    None => Ok(Box::new(stream)),
                };
            }
            Err(error) => trouble = Trouble::dialling(&error),
        }
    }
    Err(trouble)
}

async fn wrap(
    settings: &Settings,
    connector: &TlsConnector,
    stream: TcpStream,
) -> Result<Box<dyn Stream>, Trouble> {
    let name = ServerName::try_from(settings.host.clone()).map_err(|_| Trouble::WrongName)?;
    match connector.connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(Trouble::handshake(&error)),
    }
}

/// Anew for each connection: a file that was corrected helps at once.
async fn connector(settings: &Settings) -> Result<TlsConnector, Trouble> {
    let file = settings.ca_file.clone();
    let roots = tokio::task::spawn_blocking(move || match file {
        Some(file) => roots_of(&file),
        None => Ok(roots_of_system()),
    });
    let roots = roots
        .await
        .map_err(|error| Trouble::Tls(error.to_string()))??;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Trouble::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots_of(file: &Path) -> Result<RootCertStore, Trouble> {
    let wrong = |why: String| Trouble::CaFile(format!("the CA file {} {why}", file.display()));
    let pem = std::fs::read(file).map_err(|error| wrong(format!("can not be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(format!("is not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(format!("holds no proper certificate: {error}")))?;
    }
    if roots.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    Ok(roots)
}

fn roots_of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The first words: who we are, and whether the broker lets us in.
async fn greet(
    settings: &Settings,
    id: &str,
    version: u8,
    stream: Box<dyn Stream>,
) -> Result<Link, Trouble> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = Frames::new(reader, LARGEST_CONNACK);
    let mut hello = BytesMut::new();
    connect_packet(settings, id, version)
        .encode(&mut hello)
        .map_err(|error| Trouble::Tls(error.to_string()))?;
    let sent = async {
        writer.write_all(&hello).await?;
        writer.flush().await
    };
    // A broker may have answered before it hung up: what it said counts more.
    drop(sent.await);
    let given = settings.username.is_some() || settings.password.is_some();
    match reader.next().await {
        Ok(Frame::Packet { first: 0x20, body }) => {
            let terms = terms(settings, version, given, body)?;
            reader.most = LARGEST;
            Ok(Link {
                reader,
                writer,
                terms,
            })
        }
        Ok(Frame::Packet { first, body }) => Err(Trouble::strange([
            first,
            body.first().copied().unwrap_or_default(),
        ])),
        Ok(Frame::TooLarge { .. }) => Err(Trouble::NotMqtt),
        Err(Torn::Closed) => Err(reader.begun().map_or(Trouble::HungUp, Trouble::strange)),
        Err(Torn::NotMqtt(bytes)) => Err(Trouble::strange(bytes)),
    }
}

fn connect_packet(settings: &Settings, id: &str, version: u8) -> ConnectPacket {
    let mut options = mqtt5_protocol::ConnectOptions::new(id);
    // Whatever the broker may have kept of an earlier connection must not come back.
    options.clean_start = true;
    options.keep_alive = settings.keep_alive.max(Duration::from_secs(1));
    options.username = settings
        .username
        .clone()
        .or_else(|| settings.password.as_ref().map(|_| String::new()));
    options.password = settings
        .password
        .as_ref()
        .map(|password| password.clone().into_bytes());
    options.will = settings.will.as_ref().map(|will| {
        WillMessage::new(will.topic.clone(), will.payload.to_vec())
            .with_qos(QoS::AtLeastOnce)
            .with_retain(will.retain)
    });
    if version == 4 {
        return ConnectPacket::new_v311(options);
    }
    options.properties = ConnectProperties {
        maximum_packet_size: u32::try_from(LARGEST).ok(),
        ..ConnectProperties::default()
    };
    ConnectPacket::new(options)
}

fn terms(settings: &Settings, version: u8, given: bool, mut body: Bytes) -> Result<Terms, Trouble> {
    let mut terms = Terms {
        version,
        window: WINDOW,
        largest: LARGEST,
        retain: true,
        names_filters: false,
        keep_alive: settings.keep_alive,
    };
    if body.len() < 2 {
        return Err(Trouble::NotMqtt);
    }
    let code = body[1];
    // Two bytes are the answer of MQTT 3.1.1, also to one who asked in 5.
    if version == 4 || body.len() == 2 {
        return match code {
            0 if version == 4 => Ok(terms),
            0 => Err(Trouble::Version),
            code => Err(Trouble::returned(code, given)),
        };
    }
    if code != 0 {
        return Err(Trouble::told(code, given));
    }
    let header = FixedHeader::new(
        PacketType::ConnAck,
        0,
        u32::try_from(body.remaining()).unwrap_or(u32::MAX),
    );
    let answer = ConnAckPacket::decode_body(&mut body, &header).map_err(|_| Trouble::NotMqtt)?;
    let flag = |id| !matches!(answer.properties.get(id), Some(PropertyValue::Byte(0)));
    if answer.properties.get_maximum_qos() == Some(0) {
        return Err(Trouble::Unconfirming);
    }
    if let Some(window) = answer.receive_maximum() {
        terms.window = usize::from(window).clamp(1, WINDOW);
    }
    if let Some(largest) = answer.maximum_packet_size() {
        terms.largest = usize::try_from(largest).unwrap_or(LARGEST).min(LARGEST);
    }
    if let Some(seconds @ 1..) = answer.properties.get_server_keep_alive() {
        terms.keep_alive = settings.keep_alive.min(Duration::from_secs(seconds.into()));
    }
    terms.retain = flag(PropertyId::RetainAvailable);
    terms.names_filters = flag(PropertyId::SubscriptionIdentifierAvailable);
    Ok(terms)
}
