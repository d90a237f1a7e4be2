use headgate_server::Config;
use tokio::task::spawn_blocking;

use super::{bounded, report::Finding};

/// Checks all services beside Redis and the database, concurrently.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (jwks, xds, traces, metrics, kafka, webhooks) = tokio::join!(
        bounded("jwks", jwks(config)),
        bounded("xds", xds(config)),
        bounded("traces", traces(config)),
        bounded("metrics", metrics(config)),
        bounded("kafka", kafka(config)),
        bounded("webhooks", webhooks(config)),
    );
    [jwks, xds, traces, metrics, kafka, webhooks].concat()
}

async fn jwks(config: &Config) -> Vec<Finding> {
    const AREA: &str = "jwks";
    let advice = "check auth.jwks_url and that the issuer runs; without keys, no JWT is accepted";
    match config.auth.count_keys().await {
        Ok(None) => Vec::new(),
        Ok(Some(count)) => vec![Finding::ok(AREA, format!("the issuer has {count} keys"))],
        Err(error) => {
            vec![Finding::error(AREA, format!("cannot fetch the issuer's keys: {error}"), advice)]
        }
    }
}

async fn xds(config: &Config) -> Vec<Finding> {
    const AREA: &str = "xds";
    let Some(url) = config.envoy.xds.url.as_ref().filter(|_| config.envoy.enabled) else {
        return Vec::new();
    };
    match config.envoy.xds.try_connect().await {
        Ok(()) => vec![Finding::ok(AREA, format!("{url} accepts connections"))],
        Err(error) => {
            let advice = "check envoy.xds.url and its certificates, and that the management \
                          server runs";
            vec![Finding::error(AREA, format!("cannot connect to {url}: {error}"), advice)]
        }
    }
}

async fn traces(config: &Config) -> Vec<Finding> {
    const AREA: &str = "traces";
    let trace = &config.observability.trace;
    if !trace.enabled {
        return Vec::new();
    }
    match trace.try_connect().await {
        Ok(()) => vec![Finding::ok(AREA, "the collector accepts connections")],
        Err(error) => {
            let advice = "check observability.trace.endpoint; spans are dropped meanwhile";
            vec![Finding::warning(
                AREA,
                format!("cannot connect to the collector: {error}"),
                advice,
            )]
        }
    }
}

async fn metrics(config: &Config) -> Vec<Finding> {
    const AREA: &str = "metrics";
    let otlp = &config.observability.metrics.otlp;
    if !otlp.enabled {
        return Vec::new();
    }
    match otlp.try_connect().await {
        Ok(()) => vec![Finding::ok(AREA, "the collector accepts connections")],
        Err(error) => {
            let advice = "check observability.metrics.otlp.endpoint; /metrics is not affected";
            let message = format!("cannot connect to the collector: {error}");
            vec![Finding::warning(AREA, message, advice)]
        }
    }
}

/// Asks the brokers about themselves and about the topics, as the server would.
#[cfg(feature = "kafka")]
async fn kafka(config: &Config) -> Vec<Finding> {
    use std::time::Duration;

    const AREA: &str = "kafka";
    /// Less than each check has, so that the reason is reported.
    const WAIT: Duration = Duration::from_secs(8);

    if config.kafka.brokers.is_empty() {
        return Vec::new();
    }
    let kafka = config.kafka.clone();
    let inspected = spawn_blocking(move || kafka.inspect(WAIT)).await;
    let inspected = inspected.unwrap_or_else(|error| Err(error.to_string()));
    match inspected {
        Ok(inspection) => {
            let brokers = inspection.brokers;
            let message = format!("the brokers answer ({brokers} in the cluster)");
            let mut findings = vec![Finding::ok(AREA, message)];
            findings.extend(inspection.missing_topics.iter().map(|topic| {
                let advice = "create it, unless the brokers create topics by themselves";
                Finding::warning(AREA, format!("there is no topic {topic}"), advice)
            }));
            findings
        }
        Err(error) => vec![Finding::warning(
            AREA,
            format!("no broker answers: {error}"),
            "check kafka.brokers, kafka.security_protocol and the credentials; events wait in the \
             database meanwhile",
        )],
    }
}

/// A program without Kafka refuses a configuration with brokers.
#[cfg(not(feature = "kafka"))]
fn kafka(_: &Config) -> std::future::Ready<Vec<Finding>> {
    std::future::ready(Vec::new())
}

async fn webhooks(config: &Config) -> Vec<Finding> {
    const AREA: &str = "webhooks";
    let mut findings = Vec::new();
    for webhook in &config.webhooks {
        let (origin, receiver) = (webhook.url.shown(), webhook.clone());
        let connected = spawn_blocking(move || receiver.try_connect()).await;
        let connected = connected.unwrap_or_else(|error| Err(error.to_string()));
        findings.push(match connected {
            Ok(()) => Finding::ok(AREA, format!("{origin} accepts connections")),
            Err(error) => Finding::warning(
                AREA,
                format!("cannot connect to {origin}: {error}"),
                "check the URL and its certificates; events wait in the database meanwhile",
            ),
        });
    }
    findings
}
