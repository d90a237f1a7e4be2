//! A Redis Cluster: which node serves which slots, and calls that go where they belong.

mod table;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use headgate::StoreError;
use redis::{ConnectionInfo, Value, cmd};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    RedisConfig,
    connection::CallError,
    dial::{DialError, Dialer},
    error::Meaning,
    link::{LinkError, Manner},
    node::{Node, Order},
    source::{Source, with_address},
};
use table::SlotRange;
pub(crate) use table::Table;

/// A Redis Cluster.
pub(crate) struct Cluster {
    shared: Arc<Shared>,
    table: watch::Receiver<Known>,
    refresher: AbortHandle,
}

struct Shared {
    config: RedisConfig,
    dialer: Dialer,
    seeds: Vec<ConnectionInfo>,
    /// Every node that calls went to, by its address.
    nodes: Mutex<HashMap<String, Arc<Node>>>,
    /// Rung when the table may be out of date.
    is_stale: Notify,
}

/// What is known of the cluster.
#[derive(Clone)]
enum Known {
    Nothing,
    Table(Arc<Table>),
    Failed(Arc<DialError>),
}

/// Times that a call is sent on before it is given up.
const MAX_HOPS: u32 = 5;

/// Pause before a call whose keys are being moved is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);

// === impl Cluster ===

impl Cluster {
    pub(crate) fn open(config: &RedisConfig, dialer: &Dialer, seeds: &[ConnectionInfo]) -> Self {
        let shared = Arc::new(Shared {
            config: config.clone(),
            dialer: dialer.clone(),
            seeds: seeds.to_vec(),
            nodes: Mutex::default(),
            is_stale: Notify::new(),
        });
        let (publish, table) = watch::channel(Known::Nothing);
        let refresher = tokio::spawn(keep_fresh(Arc::clone(&shared), publish)).abort_handle();
        Self { shared, table, refresher }
    }

    /// Who serves which slots, if that is known.
    pub(crate) fn table(&self) -> Result<Option<Arc<Table>>, Arc<DialError>> {
        match &*self.table.borrow() {
            Known::Nothing => Ok(None),
            Known::Table(table) => Ok(Some(Arc::clone(table))),
            Known::Failed(error) => Err(Arc::clone(error)),
        }
    }

    /// Whether the node of `slot` may be asked now.
    pub(crate) fn admits(&self, slot: u16) -> bool {
        match &*self.table.borrow() {
            Known::Table(table) => table.owner(slot).is_none_or(|node| node.admits()),
            Known::Nothing | Known::Failed(_) => true,
        }
    }

    /// Has the node of `slot` do `order`, wherever the slot has moved to.
    pub(crate) async fn perform(
        &self,
        order: Order<'_>,
        slot: u16,
        must: bool,
    ) -> Result<Value, StoreError> {
        let mut node = self.owner(slot).await?;
        let mut manner = Manner { asking: false, must };
        for hop in 1.. {
            let error = match node.perform(order, manner).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let meaning = error.meaning();
            if is_sign_of_change(&error, meaning.as_ref()) {
                self.shared.is_stale.notify_one();
            }
            let next = match meaning {
                Some(Meaning::Moved(address)) if hop < MAX_HOPS => Some((address, false)),
                Some(Meaning::Ask(address)) if hop < MAX_HOPS => Some((address, true)),
                Some(Meaning::TryAgain) if hop < MAX_HOPS => {
                    sleep(TRY_AGAIN_AFTER).await;
                    continue;
                }
                _ => None,
            };
            let Some((address, asking)) = next else {
                return Err(error.into_store_error(node.timeout()));
            };
            node = self.shared.node_at(&address, node.name())?;
            manner.asking = asking;
            if !must && !node.admits() {
                return Err(StoreError::BreakerOpen);
            }
        }
        Err(StoreError::BreakerOpen)
    }

    /// The node that serves `slot`; before anything is known of the cluster, waits for it.
    async fn owner(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        let unserved = || StoreError::Refused(format!("no node of the cluster serves slot {slot}"));
        let owner = |known: &Known| match known {
            Known::Nothing => None,
            Known::Table(table) => Some(table.owner(slot).cloned().ok_or_else(unserved)),
            Known::Failed(error) => Some(Err(StoreError::Unavailable(Arc::clone(error) as Arc<_>))),
        };
        if let Some(owner) = owner(&self.table.borrow()) {
            return owner;
        }
        let mut table = self.table.clone();
        let patience = self.shared.config.timeout;
        let known = timeout(patience, table.wait_for(|known| owner(known).is_some())).await;
        let known = known.map_err(|_| StoreError::Timeout(patience))?;
        owner(&*known.map_err(StoreError::unavailable)?).unwrap_or_else(|| Err(unserved()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

/// Whether another node may serve the slot by now.
fn is_sign_of_change(error: &LinkError, meaning: Option<&Meaning>) -> bool {
    match (error, meaning) {
        (LinkError::Call(CallError::Full), _) => false,
        (_, Some(meaning)) => {
            matches!(
                meaning,
                Meaning::Moved(_) | Meaning::Demoted | Meaning::Away | Meaning::Refused
            )
        }
        (_, None) => true,
    }
}

// === the refresher ===

/// Learns who serves which slots, and learns it anew when that may have changed.
async fn keep_fresh(shared: Arc<Shared>, publish: watch::Sender<Known>) {
    /// However often calls say that something has changed.
    const AT_MOST_EVERY: Duration = Duration::from_millis(100);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
    let mut pause = AT_MOST_EVERY;
    loop {
        let known = publish.borrow().clone();
        let table = if let Known::Table(table) = known { Some(table) } else { None };
        match shared.discover(table.as_deref()).await {
            Ok(ranges) => {
                pause = AT_MOST_EVERY;
                let found = shared.table(ranges);
                if table.is_none_or(|table| *table != found) {
                    tracing::info!(
                        nodes = found.nodes().len(),
                        "learned the slots of the Redis cluster"
                    );
                    publish.send_replace(Known::Table(Arc::new(found)));
                }
            }
            Err(error) => {
                pause = (pause * 2).min(LONGEST_PAUSE);
                tracing::warn!(%error, retry_in = ?pause, "cannot learn the slots of the Redis cluster");
                if table.is_none() {
                    publish.send_replace(Known::Failed(Arc::new(error)));
                    shared.is_stale.notify_one();
                }
            }
        }
        sleep(pause).await;
        let _ = timeout(AT_LEAST_EVERY, shared.is_stale.notified()).await;
    }
}

impl Shared {
    /// Asks the nodes that answer, then those of the configuration.
    async fn discover(&self, table: Option<&Table>) -> Result<Vec<SlotRange>, DialError> {
        for node in table.into_iter().flat_map(Table::nodes) {
            if node.trouble().is_none()
                && let Ok(slots) = node.ask(cmd("CLUSTER").arg("SLOTS")).await
                && let Some(ranges) = table::ranges(&slots, host_of(node.name()))
            {
                return Ok(ranges);
            }
        }
        let mut error = DialError::NoNode;
        for seed in &self.seeds {
            match self.ask_seed(seed).await {
                Ok(ranges) => return Ok(ranges),
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }

    async fn ask_seed(&self, seed: &ConnectionInfo) -> Result<Vec<SlotRange>, DialError> {
        let address = seed.addr().to_string();
        let slots = self.dialer.ask(seed, cmd("CLUSTER").arg("SLOTS").clone());
        let slots = timeout(self.config.connect_timeout, slots).await;
        let is_tls = self.config.is_tls();
        match slots.unwrap_or_else(|_| Err(DialError::timeout(address.clone(), is_tls))) {
            Ok(slots) => table::ranges(&slots, host_of(&address)).ok_or(DialError::NoNode),
            Err(DialError::Refused { cause, .. }) if cause.text().contains("cluster support") => {
                Err(DialError::NoCluster(address))
            }
            Err(error) => Err(error),
        }
    }

    /// The table of these ranges, with the nodes there are; others are forgotten.
    fn table(&self, ranges: Vec<SlotRange>) -> Table {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = ranges.into_iter().map(|range| {
            let node = self.node(&mut nodes, &range.host, range.port);
            (range.first, range.last, node)
        });
        let table = Table::new(owned.collect());
        nodes.retain(|name, _| table.nodes().iter().any(|node| node.name() == name));
        table
    }

    /// The node at `address`, as Redis tells it to the client of `asked`.
    fn node_at(&self, address: &str, asked: &str) -> Result<Arc<Node>, StoreError> {
        let nowhere = || StoreError::Refused(format!("not an address of a node: {address:?}"));
        let (host, port) = address.rsplit_once(':').ok_or_else(nowhere)?;
        let port = port.parse().map_err(|_| nowhere())?;
        let host = if host.is_empty() { host_of(asked) } else { host };
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.node(&mut nodes, host, port))
    }

    fn node(&self, nodes: &mut HashMap<String, Arc<Node>>, host: &str, port: u16) -> Arc<Node> {
        let host = host.trim_matches(['[', ']']).to_owned();
        let server = with_address(&self.seeds[0], host, port);
        let source = Source::At(Box::new(server));
        let open = || Arc::new(Node::open(&self.config, &self.dialer, &source, 1));
        Arc::clone(nodes.entry(source.name()).or_insert_with(open))
    }
}

fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}
