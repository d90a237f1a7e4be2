use super::*;
use crate::tests::Config;

fn load(keys: &[(&str, &str)]) -> Result<Config, String> {
    let variables = keys.iter().map(|(key, value)| {
        let key = format!("HEADGATE__KAFKA__{}", key.to_uppercase());
        (key, (*value).to_owned())
    });
    Config::load(variables)
}

/// As [`load`], in a build with Kafka.
fn problems(keys: &[(&str, &str)]) -> Vec<String> {
    let config = load(keys).expect("keys that fit by themselves");
    config.kafka.contradictions_in(true).iter().map(ToString::to_string).collect()
}

#[test]
fn a_build_without_kafka_rejects_brokers_and_says_what_to_do() {
    let mut kafka = KafkaConfig::default();
    assert!(kafka.contradictions_in(false).is_empty());
    kafka.brokers = vec![Broker("kafka-0:9092".to_owned())];
    let told = kafka.contradictions_in(false)[0].to_string();
    assert!(told.starts_with("kafka.brokers: this program was built without Kafka"), "{told}");
    assert!(told.contains("--features kafka"));
    assert!(kafka.contradictions_in(true).is_empty());
}

#[test]
fn invalid_brokers_and_topics_are_reported_by_key() {
    for broker in
        ["kafka", "kafka:", ":9092", "kafka:0", "kafka:99999", "http://kafka:9092", "a b:1"]
    {
        let told = load(&[("brokers", broker)]).unwrap_err();
        assert!(told.contains("kafka.brokers[0]: expected host:port"));
    }
    for topic in ["..", "a topic", &"t".repeat(250)] {
        let told = load(&[("topic_exceeded", topic)]).unwrap_err();
        assert!(told.contains("kafka.topic_exceeded"), "{told}");
    }
    let told = load(&[("security_protocol", "TLS")]).unwrap_err();
    assert!(told.contains("expected PLAINTEXT or SSL or SASL_SSL"), "{told}");
}

#[test]
fn credentials_are_for_sasl_only() {
    assert!(problems(&[]).is_empty());
    let secured = ("security_protocol", "SSL");
    assert!(problems(&[secured, ("ca_file", "/etc/ca.pem")]).is_empty());
    let problem = |keys: &[(&str, &str)]| load(keys).expect_err("a contradiction");
    let told = problem(&[("security_protocol", "SASL_SSL")]);
    assert!(told.contains("kafka.username") && told.contains("kafka.password"), "{told}");
    let told = problem(&[secured, ("username", "headgate")]);
    assert!(told.contains("kafka.username"), "{told}");
    let told = problem(&[("ca_file", "/etc/ca.pem")]);
    assert!(told.contains("kafka.ca_file"), "{told}");
}
