//! Finding the master through Sentinel.

use std::rc::Rc;

use headgate_store_conformance::suite;
use headgate_testkit::{Sentinel, require};

use crate::support::{
    OnRedis, acquire, acquire_eventually, clients_never_get_more_than_the_limit, per_minute,
    runtime, store,
};

fn url(sentinel: &Sentinel) -> String {
    let nodes: Vec<String> = sentinel
        .sentinel_urls()
        .iter()
        .map(|url| url.trim_start_matches("redis://").to_owned())
        .collect();
    format!("redis+sentinel://{}/{}", nodes.join(","), sentinel.master_name())
}

#[test]
fn matches_the_model_and_follows_a_failover() {
    let sentinel = require!(Sentinel::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &url(&sentinel)), "");
    suite::agrees_with_the_model(|| Rc::clone(&fixture), 64, |scenario| runtime.block_on(scenario));
    let stores = [store(&runtime, &url(&sentinel)), store(&runtime, &url(&sentinel))];
    clients_never_get_more_than_the_limit(&runtime, stores, "");

    let store = store(&runtime, &url(&sentinel));
    let limit = per_minute(5);
    runtime.block_on(async { acquire(&store, "before", &limit).await.unwrap() });
    let old = sentinel.master_port();
    sentinel.kill_master();
    sentinel.wait_for_failover();
    assert_ne!(sentinel.master_port(), old);
    runtime.block_on(async {
        assert!(acquire_eventually(&store, "after", &limit).await[0].allowed);
    });
    assert_eq!(sentinel.master().cli(&["EXISTS", "after"]), "1");
}
