use headgate_server::Config;
use tokio::net::TcpStream;

use super::{bounded, report::Finding};

/// Checks all services beside Redis and the database, concurrently.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (jwks, xds, traces, kafka, webhooks) = tokio::join!(
        bounded("jwks", jwks(config)),
        bounded("xds", xds(config)),
        bounded("traces", traces(config)),
        bounded("kafka", kafka(config)),
        bounded("webhooks", webhooks(config)),
    );
    [jwks, xds, traces, kafka, webhooks].concat()
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
        Ok(()) => vec![Finding::ok(AREA, format!("{url} answers"))],
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
        Ok(()) => vec![Finding::ok(AREA, "the collector answers")],
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

async fn kafka(config: &Config) -> Vec<Finding> {
    const AREA: &str = "kafka";
    let mut findings = Vec::new();
    for broker in &config.kafka.brokers {
        let broker = broker.as_str();
        findings.push(match TcpStream::connect(broker).await {
            Ok(_) => Finding::ok(AREA, format!("{broker} accepts connections")),
            Err(error) => Finding::warning(
                AREA,
                format!("cannot connect to {broker}: {error}"),
                "check kafka.brokers; events wait in the database meanwhile",
            ),
        });
    }
    findings
}

async fn webhooks(config: &Config) -> Vec<Finding> {
    const AREA: &str = "webhooks";
    let mut findings = Vec::new();
    for webhook in &config.webhooks {
        // No request is sent: a receiver might take it for an event.
        let (origin, address) = (webhook.url.shown(), webhook.url.address());
        findings.push(match TcpStream::connect((address.0.as_str(), address.1)).await {
            Ok(_) => Finding::ok(AREA, format!("{origin} accepts connections")),
            Err(error) => Finding::warning(
                AREA,
                format!("cannot connect to {origin}: {error}"),
                "check the URL; events wait in the database meanwhile",
            ),
        });
    }
    findings
}
