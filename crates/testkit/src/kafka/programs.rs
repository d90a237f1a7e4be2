use std::{fs, path::PathBuf};

use crate::{Skip, cache, java};

const NAME: &str = "kafka";

/// Java, and the folder with the jars of Kafka.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) java: PathBuf,
    jars: PathBuf,
}

// === impl Programs ===

impl Programs {
    pub(super) fn find() -> Result<Self, Skip> {
        let java = java::find(NAME)?;
        let jars = cache::tool(NAME).filter(has_broker);
        let jars =
            jars.ok_or_else(|| skip("scripts/install-test-deps has not fetched its jars"))?;
        Ok(Self { java, jars })
    }

    /// All jars of the folder.
    pub(super) fn class_path(&self) -> PathBuf {
        self.jars.join("*")
    }
}

pub(super) fn skip(reason: &str) -> Skip {
    Skip::new(NAME, reason)
}

fn has_broker(folder: &PathBuf) -> bool {
    let is_broker = |name: &str| name.starts_with("kafka_2.13-");
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_broker))
    })
}
