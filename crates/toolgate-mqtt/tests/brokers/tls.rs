//! Valid and invalid TLS certificates (F5).

use std::{path::Path, process::Command};

use tempfile::TempDir;
use toolgate_mqtt::{Mqtt, MqttClient, MqttClientSettings};

use crate::{
    brokers::{RunningBroker, mosquitto_is_there, readable},
    offline, online, settings,
};

/// A certificate authority and a broker certificate that it signed.
struct TestCertificates(TempDir);

impl TestCertificates {
    fn new(from: &str, to: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let here = folder.path();
        readable(&here.to_owned());
        std::fs::write(
            here.join("extensions"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
        )
        .expect("a file");
        std::fs::write(here.join("ca.conf"), CA_CONF).expect("a file");
        std::fs::write(here.join("index"), "").expect("a file");
        std::fs::write(here.join("serial"), "01").expect("a file");
        let key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ];
        openssl(
            here,
            &[
                "req",
                "-x509",
                "-days",
                "30",
                "-subj",
                "/CN=Test CA",
                "-keyout",
                "ca.key",
                "-out",
                "ca.pem",
            ],
            &key,
        );
        openssl(
            here,
            &[
                "req",
                "-new",
                "-subj",
                "/CN=broker",
                "-keyout",
                "key.pem",
                "-out",
                "request",
            ],
            &key,
        );
        let sign = [
            "ca",
            "-batch",
            "-notext",
            "-config",
            "ca.conf",
            "-extfile",
            "extensions",
            "-in",
            "request",
            "-out",
            "cert.pem",
        ];
        openssl(here, &sign, &["-startdate", from, "-enddate", to]);
        readable(&here.join("key.pem"));
        Self(folder)
    }

    fn good() -> Self {
        Self::new("20200101000000Z", "20491231000000Z")
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    async fn broker(&self) -> RunningBroker {
        let extra = format!(
            "certfile {}\nkeyfile {}",
            self.file("cert.pem"),
            self.file("key.pem")
        );
        RunningBroker::mosquitto(&extra).await
    }
}

const CA_CONF: &str = "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem\nprivate_key=ca.key\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n";

fn openssl(folder: &Path, one: &[&str], two: &[&str]) {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(one)
        .args(two)
        .output()
        .expect("openssl runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

fn tools_are_there() -> bool {
    mosquitto_is_there() && thirdparty::has_programs(&["openssl"])
}

fn over_tls(
    broker: &RunningBroker,
    host: &str,
    authority: Option<&TestCertificates>,
) -> MqttClientSettings {
    let mut settings = settings(&format!("mqtts://{host}:{}", broker.addr().port()));
    settings.ca_file = authority.map(|authority| authority.file("ca.pem").into());
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_of_a_known_authority_is_trusted() {
    if !tools_are_there() {
        return;
    }
    let certificates = TestCertificates::good();
    let broker = certificates.broker().await;
    for host in ["localhost", "127.0.0.1"] {
        let client = MqttClient::open(over_tls(&broker, host, Some(&certificates)));
        online(&client).await;
        let mut messages = client.subscribe("a");
        let large = "x".repeat(3_000_000);
        client
            .publish("a", large.clone().into(), false)
            .await
            .unwrap();
        assert!(messages.next().await.unwrap().payload == large.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_invalid_certificate_is_reported_and_nothing_is_sent() {
    if !tools_are_there() {
        return;
    }
    let good = TestCertificates::good();
    let other = TestCertificates::good();
    let expired = TestCertificates::new("20200101000000Z", "20200102000000Z");
    let broker = good.broker().await;
    let old = expired.broker().await;
    let plain = RunningBroker::mosquitto("").await;
    let mut no_file = over_tls(&broker, "localhost", Some(&good));
    no_file.ca_file = Some(good.file("nothing.pem").into());
    let mut no_certificate = over_tls(&broker, "localhost", Some(&good));
    no_certificate.ca_file = Some(good.file("key.pem").into());
    for (settings, says) in [
        (
            over_tls(&broker, "localhost", Some(&other)),
            "authority that is not trusted",
        ),
        (
            over_tls(&broker, "localhost", None),
            "authority that is not trusted",
        ),
        (over_tls(&old, "localhost", Some(&expired)), "expired"),
        (
            over_tls(&plain, "localhost", Some(&good)),
            "does not speak TLS",
        ),
        (settings(&broker.url()), "mqtts://"),
        (no_file, "can't be read"),
        (no_certificate, "contains no certificate"),
    ] {
        let shown = format!("{settings:?}");
        let client = MqttClient::open(settings);
        let reason = offline(&client, says).await;
        assert!(
            client.publish("a", "b".into(), false).await.is_err(),
            "{shown}: {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_reported() {
    if !tools_are_there() {
        return;
    }
    let certificates = TestCertificates::good();
    let broker = certificates.broker().await;
    // The same machine by a name that is not in the certificate.
    let client = MqttClient::open(over_tls(&broker, "[::ffff:127.0.0.1]", Some(&certificates)));
    offline(&client, "is not for").await;
}
