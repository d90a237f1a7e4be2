use std::path::Path;

use super::{KafkaBuilder, PASSWORD, USER, certificates, ports::Ports};

/// A single node without replication, with short timeouts for its registration and for that of the
/// previous process.
const FIXED: &str = "\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
num.partitions=3
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=2000
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=2097152
";

/// The text of `server.properties` for a broker whose files are in this folder.
pub(super) fn text(options: &KafkaBuilder, ports: Ports, folder: &Path) -> String {
    let Ports { plain, controller, ssl, sasl_ssl } = ports;
    let mut listeners = vec![
        format!("PLAINTEXT://127.0.0.1:{plain}"),
        format!("CONTROLLER://127.0.0.1:{controller}"),
    ];
    let mut lines = vec![
        format!("controller.quorum.voters=1@127.0.0.1:{controller}"),
        format!("log.dirs={}", folder.join("data").display()),
        "listener.security.protocol.map=\
         PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
            .to_owned(),
    ];
    if options.secure {
        listeners.push(format!("SSL://127.0.0.1:{ssl}"));
        listeners.push(format!("SASL_SSL://127.0.0.1:{sasl_ssl}"));
        lines.extend(secure(folder));
    }
    lines.push(format!("listeners={}", listeners.join(",")));
    // The last value counts, so those of the test come last.
    lines.extend(options.properties.iter().map(|(name, value)| format!("{name}={value}")));
    format!("{FIXED}{}\n", lines.join("\n"))
}

fn secure(folder: &Path) -> Vec<String> {
    const LISTENER: &str = "listener.name.sasl_ssl";
    const MODULES: &str = "org.apache.kafka.common.security";
    let scram = |size: u16| {
        format!(
            "{LISTENER}.scram-sha-{size}.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;"
        )
    };
    let plain = format!(
        "{LISTENER}.plain.sasl.jaas.config={MODULES}.plain.PlainLoginModule required user_{USER}=\"{PASSWORD}\";"
    );
    vec![
        "ssl.keystore.type=PEM".to_owned(),
        format!("ssl.keystore.location={}", certificates::key_store(folder).display()),
        "ssl.truststore.type=PEM".to_owned(),
        format!("ssl.truststore.location={}", certificates::authority(folder).display()),
        "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN".to_owned(),
        scram(256),
        scram(512),
        plain,
    ]
}
