//! The reasons why a client is offline, as sentences for people.

use std::{io, time::Duration};

use rustls::CertificateError;
use toolgate_core::text::escape;

use crate::{MqttClientSettings, frames::StreamEndError};

/// Displays what the broker does and what helps, without a subject: [`describe`](Self::describe)
/// puts the broker in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LinkError {
    #[error("is not connected yet.")]
    Connecting,
    #[error(
        "can't be found: the host name is unknown. Check the host in the address, or write its IP address."
    )]
    NoSuchName,
    #[error(
        "refused the connection: nothing listens on that port. Start it, or correct the address."
    )]
    Refused,
    #[error("can't be reached ({}). Check the address, the network and the firewall.", escape(.0))]
    Unreachable(String),
    #[error("accepts the connection but does not answer within {} s. It hangs, or something else \
             listens on that port; restart it or correct the address.", .0.as_secs())]
    Silent(Duration),
    #[error(
        "closes the connection without an answer. Its log shows why; if the port is for TLS, \
             use mqtts://."
    )]
    HungUp,
    #[error("closed the connection. The connection is retried automatically.")]
    Lost,
    #[error("has been silent for {:.0} s: it hangs, or the network is down. The connection is \
             retried automatically.", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("{}", if *.given {
        "refuses the user name or the password. Correct them."
    } else {
        "requires a user name and a password. Set them; none are set now."
    })]
    Credentials { given: bool },
    #[error("refuses the client id. Choose one that it accepts.")]
    ClientId,
    #[error("does not speak this version of MQTT. Allow the other one, or update the broker.")]
    Version,
    #[error("is busy or at its limit of clients. The connection is retried automatically.")]
    Busy,
    #[error("has banned this client. Ask its administrator to lift the ban.")]
    Banned,
    #[error("redirects to another server. Use the address of that server.")]
    Moved,
    /// Another client took over our id, this many times recently.
    #[error("let another client take over the connection{}", if *.0 >= CONFLICT_COUNT {
        format!(" {} times: two programs use the same client id. {ONE_CLIENT_ID}.", .0)
    } else {
        " under the same client id. The connection is retried automatically.".to_owned()
    })]
    TakenOver(u32),
    /// Closed without a reason this many times in a row soon after connecting.
    #[error(
        "closed the connection {0} times in a row soon after it was made: perhaps two programs \
             use the same client id. {ONE_CLIENT_ID}; the broker's log shows more."
    )]
    Dropped(u32),
    #[error("is shutting down. The connection is retried automatically.")]
    ShuttingDown,
    #[error("ended the connection with reason 0x{0:02x}. Its log shows more.")]
    Code(u8),
    #[error("confirms nothing (it offers no QoS 1). Allow QoS 1 in its configuration.")]
    NoQos,
    #[error(
        "answers with something that is not MQTT. Correct the host and the port in the address."
    )]
    NotMqtt,
    #[error("requires TLS on that port. Write mqtts:// in the address.")]
    SpeaksTls,
    #[error("does not speak TLS on that port. Use its port for TLS. Nothing was sent unencrypted.")]
    SpeaksNoTls,
    #[error(
        "shows a certificate of an authority that is not trusted here. Give the file of that \
             authority's certificate (CA file), if it is the right broker."
    )]
    Issuer,
    #[error(
        "shows a certificate that is expired or not valid yet. Renew it, and check the clocks \
             of both machines."
    )]
    Expired,
    #[error("shows a certificate that is not for {}. Write the address with the name the \
             certificate is for.", escape(.0))]
    WrongName(String),
    #[error("can't be trusted ({}). Check its TLS settings.", escape(.0))]
    Tls(String),
    #[error("is not contacted: {}. Correct the CA file; it must contain certificates in PEM.", escape(.0))]
    CaFile(String),
}

/// This many take-overs within two minutes are reported as a conflict.
pub(super) const CONFLICT_COUNT: u32 = 3;
const ONE_CLIENT_ID: &str = "Stop the other program, or give one of them another client id";

impl LinkError {
    /// True if it won't go away by itself.
    pub(super) fn needs_user_action(&self) -> bool {
        match self {
            Self::Credentials { .. }
            | Self::ClientId
            | Self::Version
            | Self::Banned
            | Self::Moved
            | Self::NoQos
            | Self::NotMqtt
            | Self::SpeaksTls
            | Self::SpeaksNoTls
            | Self::Issuer
            | Self::Expired
            | Self::WrongName(_)
            | Self::Tls(_)
            | Self::CaFile(_) => true,
            Self::TakenOver(times) => *times >= CONFLICT_COUNT,
            _ => false,
        }
    }

    pub(super) fn describe(&self, settings: &MqttClientSettings) -> String {
        format!("The MQTT broker {} {self}", settings.address())
    }

    pub(super) fn from_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            _ => Self::Unreachable(error.to_string()),
        }
    }

    pub(super) fn from_tls(error: &io::Error, host: &str) -> Self {
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Issuer,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::Expired,
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    Self::WrongName(host.to_owned())
                }
                other => Self::Tls(other.to_string()),
            },
            Some(rustls::Error::InvalidMessage(_)) => Self::SpeaksNoTls,
            Some(other) => Self::Tls(other.to_string()),
            // A broker without TLS takes our first bytes for garbage and hangs up.
            None => Self::SpeaksNoTls,
        }
    }

    pub(super) fn from_stream_end(error: &StreamEndError) -> Self {
        match error {
            StreamEndError::Closed => Self::Lost,
            StreamEndError::NotMqtt(bytes) => Self::from_bytes(*bytes),
        }
    }

    pub(super) fn from_bytes(bytes: [u8; 2]) -> Self {
        // The first bytes of a TLS alert.
        if bytes == [0x15, 0x03] {
            Self::SpeaksTls
        } else {
            Self::NotMqtt
        }
    }

    pub(super) fn from_reason_code(code: u8, given: bool) -> Self {
        match code {
            0x84 => Self::Version,
            0x85 => Self::ClientId,
            0x86 | 0x87 | 0x8c => Self::Credentials { given },
            0x88 | 0x89 | 0x97 | 0x9f => Self::Busy,
            0x8a => Self::Banned,
            0x8b => Self::ShuttingDown,
            0x8e => Self::TakenOver(1),
            0x9c | 0x9d => Self::Moved,
            0x9b => Self::NoQos,
            other => Self::Code(other),
        }
    }

    pub(super) fn from_return_code(code: u8, given: bool) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::ClientId,
            3 => Self::Busy,
            4 | 5 => Self::Credentials { given },
            other => Self::from_reason_code(other, given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_the_broker_and_what_to_do_and_no_secret() {
        let settings = MqttClientSettings::new("mqtt://house:sesame-1@broker.example").unwrap();
        let second = Duration::from_secs(1);
        let errors = [
            LinkError::NoSuchName,
            LinkError::Refused,
            LinkError::Unreachable("x\ny".to_owned()),
            LinkError::Silent(second),
            LinkError::HungUp,
            LinkError::Lost,
            LinkError::TimedOut(second),
            LinkError::Credentials { given: true },
            LinkError::Credentials { given: false },
            LinkError::ClientId,
            LinkError::Version,
            LinkError::Busy,
            LinkError::Banned,
            LinkError::Moved,
            LinkError::TakenOver(1),
            LinkError::TakenOver(9),
            LinkError::Dropped(3),
            LinkError::ShuttingDown,
            LinkError::Code(0x80),
            LinkError::NoQos,
            LinkError::NotMqtt,
            LinkError::SpeaksTls,
            LinkError::SpeaksNoTls,
            LinkError::Issuer,
            LinkError::Expired,
            LinkError::WrongName("x".to_owned()),
            LinkError::Tls("x".to_owned()),
            LinkError::CaFile("x".to_owned()),
        ];
        for link_error in errors {
            let words = link_error.describe(&settings);
            assert!(
                words.starts_with("The MQTT broker mqtt://broker.example:1883 "),
                "{words}"
            );
            assert!(
                words.matches(". ").count() >= 1 && words.ends_with('.'),
                "{words}"
            );
            assert!(
                !words.contains("sesame") && !words.contains('\n'),
                "{words}"
            );
        }
    }
}
