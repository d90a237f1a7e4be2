//! The guide matches the code.

use std::{fs, path::PathBuf};

use headgate_community_node::documents::kinds;

use super::harness::Server;

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn guide() -> String {
    read("docs/guides/community-node.md")
}

#[test]
fn every_variable_is_in_the_guide() {
    let (guide, source) = (guide(), read("apps/community-node/src/config.rs"));
    let texts = source.split('"').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.starts_with("CN_")
            && text.len() > 3
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let variables: Vec<&str> = texts.filter(is_name).collect();
    assert!(variables.len() >= 16, "{variables:?}");
    for variable in variables {
        assert!(guide.contains(&format!("`{variable}`")), "{variable} is not in the guide");
    }
}

#[test]
fn the_documents_in_the_guide_are_valid() {
    let guide = guide();
    let mut documents = 0;
    for part in guide.split("```json\n").skip(1) {
        let (document, _) = part.split_once("\n```").unwrap();
        let (service, config) = ["relay", "user-api", "bootstrap"]
            .into_iter()
            .find_map(|service| {
                let config: serde_json::Value = serde_json::from_str(document).unwrap();
                Some((service, config.get(service)?.clone()))
            })
            .expect("a service");
        assert_eq!(kinds().validate(service, &config), Ok(()), "{document}");
        documents += 1;
    }
    assert_eq!(documents, 3);
}

#[tokio::test]
async fn every_metric_is_in_the_guide() {
    let server = Server::start().await;
    server.get_from("198.51.100.1", "/v1/trending").await.is(401);
    let (guide, metrics) = (guide(), server.get("/metrics").await.text);
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(guide.contains(&format!("`{name}")), "{name} is not in the guide");
    }
}
