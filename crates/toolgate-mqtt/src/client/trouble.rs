//! Why there is no connection, in words.

use std::{io, time::Duration};

use rustls::CertificateError;
use toolgate_core::escape;

use crate::{Settings, frames::Torn};

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has not been tried yet.
    Begun,
    NoSuchName,
    Nobody,
    Unreachable(String),
    /// Took the connection and said nothing.
    Silent(Duration),
    /// Hung up before a word.
    HungUp,
    Lost,
    /// Nothing was heard for this long.
    Mute(Duration),
    Credentials {
        given: bool,
    },
    ClientId,
    Version,
    Busy,
    Banned,
    Elsewhere,
    /// Somebody else connected under our name, this often in a short time.
    TakenOver(u32),
    /// Closed without a reason, this often in a row soon after it was made.
    Dropped(u32),
    ShuttingDown,
    /// Another reason the broker gave, as its number.
    Told(u8),
    Unconfirming,
    NotMqtt,
    SpeaksTls,
    SpeaksNoTls,
    Issuer,
    Expired,
    WrongName,
    Tls(String),
    CaFile(String),
}

impl Trouble {
    /// True if it does not go away by itself.
    pub(super) fn needs_a_person(&self) -> bool {
        match self {
            Self::Credentials { .. }
            | Self::ClientId
            | Self::Version
            | Self::Banned
            | Self::Elsewhere
            | Self::Unconfirming
            | Self::NotMqtt
            | Self::SpeaksTls
            | Self::SpeaksNoTls
            | Self::Issuer
            | Self::Expired
            | Self::WrongName
            | Self::Tls(_)
            | Self::CaFile(_) => true,
            Self::TakenOver(times) => *times >= FIGHT,
            _ => false,
        }
    }

    /// What is wrong and what to do, for a person.
    pub(super) fn words(&self, settings: &Settings) -> String {
        let broker = format!("The MQTT broker {}", settings.address());
        let does = |what: &str, advice: &str| format!("{broker} {what}. {advice}");
        match self {
            Self::Begun => format!("The connection to {} is being made.", settings.address()),
            Self::NoSuchName => does(
                "can not be found: no machine of that name is known",
                "Check the host in the address, or write its IP address.",
            ),
            Self::Nobody => does(
                "is not there: nothing listens on that port",
                "Start it, or correct the address.",
            ),
            Self::Unreachable(why) => does(
                &format!("can not be reached ({})", escape(why)),
                "Check the address, the network and the firewall.",
            ),
            Self::Silent(time) => does(
                &format!(
                    "takes the connection and says nothing within {} s",
                    time.as_secs()
                ),
                "It hangs, or something else listens on that port; restart it or correct the address.",
            ),
            Self::HungUp => does(
                "closes the connection without a word",
                "Its log tells why; if the port is one for TLS, write mqtts://.",
            ),
            Self::Lost => does("closed the connection", "It is tried again by itself."),
            Self::Mute(time) => does(
                &format!(
                    "has not been heard for {:.0} s: it hangs, or the network is cut",
                    time.as_secs_f64()
                ),
                "It is tried again by itself.",
            ),
            other => other.words_of_refusal(settings, &does),
        }
    }

    fn words_of_refusal(&self, settings: &Settings, does: &dyn Fn(&str, &str) -> String) -> String {
        match self {
            Self::Credentials { given: true } => does(
                "refuses the user name or the password",
                "Correct them; nothing is sent without them.",
            ),
            Self::Credentials { given: false } => does(
                "wants a user name and a password",
                "Set them; none are set now.",
            ),
            Self::ClientId => does("refuses the client id", "Choose one that it admits."),
            Self::Version => does(
                "does not speak this version of MQTT",
                "Allow the other one, or update the broker.",
            ),
            Self::Busy => does(
                "is busy or at its limit of clients",
                "It is tried again by itself.",
            ),
            Self::Banned => does(
                "has banned this client",
                "Its administrator has to lift that.",
            ),
            Self::Elsewhere => does(
                "sends us to another server",
                "Write the address of that one.",
            ),
            Self::TakenOver(times) if *times >= FIGHT => does(
                &format!(
                    "let somebody else take over our connection {times} times: two programs fight for the same client id"
                ),
                "Stop the other program, or give one of them another client id.",
            ),
            Self::TakenOver(_) => does(
                "let somebody else take over our connection under the same client id",
                "It is tried again by itself.",
            ),
            Self::Dropped(times) => does(
                &format!(
                    "closed the connection {times} times in a row soon after it was made: \
                     perhaps two programs fight for the same client id"
                ),
                "Stop the other program, or give one of them another client id; the broker's log tells more.",
            ),
            Self::ShuttingDown => does("is shutting down", "It is tried again by itself."),
            Self::Told(code) => does(
                &format!("ended the connection with reason 0x{code:02x}"),
                "Its log tells more.",
            ),
            Self::Unconfirming => does(
                "confirms nothing (it offers no QoS 1)",
                "Allow QoS 1 in its configuration.",
            ),
            Self::NotMqtt => does(
                "answers with something that is not MQTT",
                "Correct the host and the port in the address.",
            ),
            other => other.words_of_tls(settings, does),
        }
    }

    fn words_of_tls(&self, settings: &Settings, does: &dyn Fn(&str, &str) -> String) -> String {
        match self {
            Self::SpeaksTls => does("wants TLS on that port", "Write mqtts:// in the address."),
            Self::SpeaksNoTls => does(
                "does not speak TLS on that port",
                "Use its port for TLS. Nothing was sent in the clear.",
            ),
            Self::Issuer => does(
                "shows a certificate of an authority that is not trusted here",
                "Give the file of that authority's certificate (CA file), if it is the right broker.",
            ),
            Self::Expired => does(
                "shows a certificate that is expired or not valid yet",
                "Renew it, and check the clocks of both machines.",
            ),
            Self::WrongName => does(
                &format!(
                    "shows a certificate that is not for {}",
                    escape(&settings.host)
                ),
                "Write the address with the name the certificate is for.",
            ),
            Self::CaFile(why) => does(
                &format!("is not asked: {}", escape(why)),
                "Correct the CA file; it holds certificates in PEM.",
            ),
            Self::Tls(why) => does(
                &format!("can not be trusted ({})", escape(why)),
                "Check its TLS settings.",
            ),
            other => does(
                &format!("is not connected ({other:?})"),
                "It is tried again by itself.",
            ),
        }
    }

    /// A TCP connection could not be made.
    pub(super) fn dialling(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Nobody,
            _ => Self::Unreachable(error.to_string()),
        }
    }

    pub(super) fn handshake(error: &io::Error) -> Self {
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
                | CertificateError::NotValidForNameContext { .. } => Self::WrongName,
                other => Self::Tls(other.to_string()),
            },
            Some(rustls::Error::InvalidMessage(_)) => Self::SpeaksNoTls,
            Some(other) => Self::Tls(other.to_string()),
            // A plain broker takes our first bytes for garbage and hangs up.
            None => Self::SpeaksNoTls,
        }
    }

    /// The stream ended in the middle of a conversation.
    pub(super) fn torn(torn: &Torn) -> Self {
        match torn {
            Torn::Closed => Self::Lost,
            Torn::NotMqtt(bytes) => Self::strange(*bytes),
        }
    }

    /// What something that is not MQTT is.
    pub(super) fn strange(bytes: [u8; 2]) -> Self {
        // A TLS alert.
        if bytes == [0x15, 0x03] {
            Self::SpeaksTls
        } else {
            Self::NotMqtt
        }
    }

    /// The reason of MQTT 5 in a CONNACK or a DISCONNECT.
    pub(super) fn told(code: u8, given: bool) -> Self {
        match code {
            0x84 => Self::Version,
            0x85 => Self::ClientId,
            0x86 | 0x87 | 0x8c => Self::Credentials { given },
            0x88 | 0x89 | 0x97 | 0x9f => Self::Busy,
            0x8a => Self::Banned,
            0x8b => Self::ShuttingDown,
            0x8e => Self::TakenOver(1),
            0x9c | 0x9d => Self::Elsewhere,
            0x9b => Self::Unconfirming,
            other => Self::Told(other),
        }
    }

    /// The return code of MQTT 3.1.1 in a CONNACK.
    pub(super) fn returned(code: u8, given: bool) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::ClientId,
            3 => Self::Busy,
            4 | 5 => Self::Credentials { given },
            other => Self::told(other, given),
        }
    }
}

/// So many take-overs in a short time are a fight.
pub(super) const FIGHT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_names_the_broker_and_what_to_do_and_no_secret() {
        let settings = Settings::new("mqtt://house:sesame-1@broker.example").unwrap();
        let second = Duration::from_secs(1);
        let troubles = [
            Trouble::NoSuchName,
            Trouble::Nobody,
            Trouble::Unreachable("x\ny".to_owned()),
            Trouble::Silent(second),
            Trouble::HungUp,
            Trouble::Lost,
            Trouble::Mute(second),
            Trouble::Credentials { given: true },
            Trouble::Credentials { given: false },
            Trouble::ClientId,
            Trouble::Version,
            Trouble::Busy,
            Trouble::Banned,
            Trouble::Elsewhere,
            Trouble::TakenOver(1),
            Trouble::TakenOver(9),
            Trouble::Dropped(3),
            Trouble::ShuttingDown,
            Trouble::Told(0x80),
            Trouble::Unconfirming,
            Trouble::NotMqtt,
            Trouble::SpeaksTls,
            Trouble::SpeaksNoTls,
            Trouble::Issuer,
            Trouble::Expired,
            Trouble::WrongName,
            Trouble::Tls("x".to_owned()),
            Trouble::CaFile("x".to_owned()),
        ];
        for trouble in troubles {
            let words = trouble.words(&settings);
            assert!(
                words.starts_with("The MQTT broker mqtt://broker.example:1883 "),
                "{words}"
            );
            assert!(
                words.matches(". ").count() >= 1 && words.ends_with('.'),
                "{words}"
            );
            assert!(
                !words.contains("sesame")
                    && !words.contains('\n')
                    && !words.contains("is not connected ("),
                "{words}"
            );
        }
    }
}
