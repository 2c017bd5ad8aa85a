//! Opens a connection: TCP, TLS, and the MQTT handshake.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use mqtt5_protocol::{
    PropertyId, PropertyValue, QoS, WillMessage,
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

use super::link_error::LinkError;
use crate::{
    MqttClientSettings, MqttVersion,
    frames::{FrameReader, PacketFrame, StreamEndError},
};

// The largest accepted packet. An MQTT 5 broker is told the limit; a larger packet of an older one
// is skipped.
pub(super) const MAX_PACKET: usize = 16 * 1024 * 1024;
// The timeout from opening the connection to the broker's CONNACK.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_CONNACK: usize = 64 * 1024;
/// The number of unconfirmed publishes, unless the broker allows fewer.
const MAX_UNCONFIRMED: usize = 64;

pub(super) type BrokerReader = FrameReader<ReadHalf<Box<dyn BrokerStream>>>;
pub(super) type BrokerWriter = WriteHalf<Box<dyn BrokerStream>>;

pub(super) trait BrokerStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> BrokerStream for S {}

pub(super) struct BrokerLink {
    pub(super) reader: BrokerReader,
    pub(super) writer: BrokerWriter,
    pub(super) terms: SessionTerms,
}

#[derive(Debug, Clone)]
pub(super) struct SessionTerms {
    /// The protocol level; 4 is MQTT 3.1.1.
    pub(super) version: u8,
    pub(super) window: usize,
    pub(super) max_packet: usize,
    pub(super) retain_available: bool,
    /// Whether messages name the filters that they match.
    pub(super) subscription_ids_available: bool,
    pub(super) keep_alive: Duration,
}

/// Connects with the newest protocol version that both sides speak. `v3` remembers a
/// fallback to MQTT 3.1.1.
pub(super) async fn connect(
    settings: &MqttClientSettings,
    id: &str,
    v3: &mut bool,
) -> Result<BrokerLink, LinkError> {
    let first = match settings.version {
        MqttVersion::V3 => 4,
        MqttVersion::Any if *v3 => 4,
        MqttVersion::Any | MqttVersion::V5 => 5,
    };
    let outcome = connect_with_version(settings, id, first).await;
    if settings.version != MqttVersion::Any || !is_unknown_version(&outcome) {
        return outcome;
    }
    let other = connect_with_version(settings, id, 9 - first).await;
    if is_unknown_version(&other) {
        return outcome;
    }
    *v3 = first == 5;
    other
}

fn is_unknown_version(outcome: &Result<BrokerLink, LinkError>) -> bool {
    matches!(outcome, Err(LinkError::Version | LinkError::HungUp))
}

async fn connect_with_version(
    settings: &MqttClientSettings,
    id: &str,
    version: u8,
) -> Result<BrokerLink, LinkError> {
    let attempt = async {
        let stream = open(settings).await?;
        handshake(settings, id, version, stream).await
    };
    tokio::time::timeout(CONNECT_TIMEOUT, attempt)
        .await
        .unwrap_or(Err(LinkError::Silent(CONNECT_TIMEOUT)))
}

async fn open(settings: &MqttClientSettings) -> Result<Box<dyn BrokerStream>, LinkError> {
    // First, so that a wrong file is reported whatever state the broker is in.
    let tls = if settings.tls {
        Some(connector(settings).await?)
    } else {
        None
    };
    let addresses = tokio::net::lookup_host((settings.host.as_str(), settings.port))
        .await
        .map_err(|_| LinkError::NoSuchName)?;
    let mut link_error = LinkError::NoSuchName;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Commands must not wait for more bytes. If this fails it costs only milliseconds.
                drop(stream.set_nodelay(true));
                return match tls {
                    Some(connector) => start_tls(settings, &connector, stream).await,
                    None => Ok(Box::new(stream)),
                };
            }
            Err(error) => link_error = LinkError::from_connect(&error),
        }
    }
    Err(link_error)
}

async fn start_tls(
    settings: &MqttClientSettings,
    connector: &TlsConnector,
    stream: TcpStream,
) -> Result<Box<dyn BrokerStream>, LinkError> {
    let name = ServerName::try_from(settings.host.clone())
        .map_err(|_| LinkError::WrongName(settings.host.clone()))?;
    match connector.connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(LinkError::from_tls(&error, &settings.host)),
    }
}

// Reads the files for every connection, so that a corrected file takes effect at once.
async fn connector(settings: &MqttClientSettings) -> Result<TlsConnector, LinkError> {
    let file = settings.ca_file.clone();
    let roots = tokio::task::spawn_blocking(move || match file {
        Some(file) => roots_from_file(&file),
        None => Ok(system_roots()),
    });
    let roots = roots
        .await
        .map_err(|error| LinkError::Tls(error.to_string()))??;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| LinkError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots_from_file(file: &Path) -> Result<RootCertStore, LinkError> {
    let wrong = |why: String| LinkError::CaFile(format!("the CA file {} {why}", file.display()));
    let pem = std::fs::read(file).map_err(|error| wrong(format!("can't be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(format!("is not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(format!("contains an invalid certificate: {error}")))?;
    }
    if roots.is_empty() {
        return Err(wrong("contains no certificate".to_owned()));
    }
    Ok(roots)
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

async fn handshake(
    settings: &MqttClientSettings,
    id: &str,
    version: u8,
    stream: Box<dyn BrokerStream>,
) -> Result<BrokerLink, LinkError> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = FrameReader::new(reader, MAX_CONNACK);
    let mut packet = BytesMut::new();
    connect_packet(settings, id, version)
        .encode(&mut packet)
        .map_err(|error| LinkError::Tls(error.to_string()))?;
    let sent = async {
        writer.write_all(&packet).await?;
        writer.flush().await
    };
    // A write error is ignored, because the broker may have answered before it hung up, and its
    // answer says more.
    drop(sent.await);
    let given = settings.username.is_some() || settings.password.is_some();
    match reader.next().await {
        Ok(PacketFrame::Packet { first: 0x20, body }) => {
            let terms = parse_connack(settings, version, given, body)?;
            reader.max_packet = MAX_PACKET;
            Ok(BrokerLink {
                reader,
                writer,
                terms,
            })
        }
        Ok(PacketFrame::Packet { first, body }) => {
            let second = body.first().copied().unwrap_or_default();
            Err(LinkError::from_bytes([first, second]))
        }
        Ok(PacketFrame::TooLarge { .. }) => Err(LinkError::NotMqtt),
        Err(StreamEndError::Closed) => Err(reader
            .partial_start()
            .map_or(LinkError::HungUp, LinkError::from_bytes)),
        Err(StreamEndError::NotMqtt(bytes)) => Err(LinkError::from_bytes(bytes)),
    }
}

fn connect_packet(settings: &MqttClientSettings, id: &str, version: u8) -> ConnectPacket {
    let mut options = mqtt5_protocol::ConnectOptions::new(id);
    // Messages of an earlier session must not come back.
    options.clean_start = true;
    options.keep_alive = settings.keep_alive.max(Duration::from_secs(1));
    let password = settings.password.clone();
    options.username = settings
        .username
        .clone()
        .or(password.as_ref().map(|_| String::new()));
    options.password = password.map(String::into_bytes);
    options.will = settings.will.as_ref().map(|will| {
        WillMessage::new(will.topic.clone(), will.payload.to_vec())
            .with_qos(QoS::AtLeastOnce)
            .with_retain(will.retain)
    });
    if version == 4 {
        return ConnectPacket::new_v311(options);
    }
    options.properties.maximum_packet_size = u32::try_from(MAX_PACKET).ok();
    ConnectPacket::new(options)
}

fn parse_connack(
    settings: &MqttClientSettings,
    version: u8,
    given: bool,
    mut body: Bytes,
) -> Result<SessionTerms, LinkError> {
    let mut terms = SessionTerms {
        version,
        window: MAX_UNCONFIRMED,
        max_packet: MAX_PACKET,
        retain_available: true,
        subscription_ids_available: false,
        keep_alive: settings.keep_alive,
    };
    if body.len() < 2 {
        return Err(LinkError::NotMqtt);
    }
    let code = body[1];
    // A body of two bytes is an MQTT 3.1.1 answer, which old brokers send even to an MQTT 5 client.
    if version == 4 || body.len() == 2 {
        return match code {
            0 if version == 4 => Ok(terms),
            0 => Err(LinkError::Version),
            code => Err(LinkError::from_return_code(code, given)),
        };
    }
    if code != 0 {
        return Err(LinkError::from_reason_code(code, given));
    }
    let size = u32::try_from(body.remaining()).unwrap_or(u32::MAX);
    let header = FixedHeader::new(PacketType::ConnAck, 0, size);
    let answer = ConnAckPacket::decode_body(&mut body, &header).map_err(|_| LinkError::NotMqtt)?;
    let flag = |id| !matches!(answer.properties.get(id), Some(PropertyValue::Byte(0)));
    if answer.properties.get_maximum_qos() == Some(0) {
        return Err(LinkError::NoQos);
    }
    if let Some(window) = answer.receive_maximum() {
        terms.window = usize::from(window).clamp(1, MAX_UNCONFIRMED);
    }
    if let Some(largest) = answer.maximum_packet_size() {
        terms.max_packet = MAX_PACKET.min(usize::try_from(largest).unwrap_or(MAX_PACKET));
    }
    if let Some(seconds @ 1..) = answer.properties.get_server_keep_alive() {
        terms.keep_alive = settings.keep_alive.min(Duration::from_secs(seconds.into()));
    }
    terms.retain_available = flag(PropertyId::RetainAvailable);
    terms.subscription_ids_available = flag(PropertyId::SubscriptionIdentifierAvailable);
    Ok(terms)
}
