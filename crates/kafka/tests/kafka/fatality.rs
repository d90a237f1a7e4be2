use rdkafka::{
    mocking::MockCluster,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

use crate::support::{message, publisher};

/// A real broker responds with this error only after it has lost messages; the mock of librdkafka
/// does so on request.
#[tokio::test]
async fn a_failed_producer_is_replaced() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 3, 1).unwrap();
    let publisher = publisher(&cluster.bootstrap_servers());
    publisher.publish(message("t", "s", "first")).await.unwrap();

    let lost = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    cluster.request_errors(RDKafkaApiKey::Produce, &[lost]);
    let error = publisher.publish(message("t", "s", "second")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    publisher.publish(message("t", "s", "second")).await.unwrap();
}
