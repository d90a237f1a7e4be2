//! A Redis Cluster: its slot map, and routing of calls.

mod slot_map;

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
    endpoint::{Endpoint, with_address},
    error::ErrorClass,
    node::{Node, Operation},
    pool::{PoolError, SendOptions},
};
pub(crate) use slot_map::SlotMap;
use slot_map::SlotRange;

/// A Redis Cluster.
pub(crate) struct Cluster {
    shared: Arc<Shared>,
    slot_map: watch::Receiver<SlotMapState>,
    refresher: AbortHandle,
}

struct Shared {
    config: RedisConfig,
    dialer: Dialer,
    seeds: Vec<ConnectionInfo>,
    /// Nodes by address.
    nodes: Mutex<HashMap<String, Arc<Node>>>,
    /// Notified when the slot map may be out of date.
    is_stale: Notify,
}

/// State of the slot map.
#[derive(Clone)]
enum SlotMapState {
    Unknown,
    Known(Arc<SlotMap>),
    Failed(Arc<DialError>),
}

/// Maximum number of redirects of a call.
const MAX_HOPS: u32 = 5;

/// Pause before a call whose keys are being moved is retried.
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
        let (publish, slot_map) = watch::channel(SlotMapState::Unknown);
        let refresher = tokio::spawn(refresh(Arc::clone(&shared), publish)).abort_handle();
        Self { shared, slot_map, refresher }
    }

    /// Timeout of a call.
    pub(crate) fn timeout(&self) -> Duration {
        self.shared.config.timeout
    }

    /// The slot map, if it is known.
    pub(crate) fn slot_map(&self) -> Result<Option<Arc<SlotMap>>, Arc<DialError>> {
        match &*self.slot_map.borrow() {
            SlotMapState::Unknown => Ok(None),
            SlotMapState::Known(slot_map) => Ok(Some(Arc::clone(slot_map))),
            SlotMapState::Failed(error) => Err(Arc::clone(error)),
        }
    }

    /// Returns `true` if the circuit breaker of the node of `slot` admits a call.
    pub(crate) fn admits(&self, slot: u16) -> bool {
        match &*self.slot_map.borrow() {
            SlotMapState::Known(slot_map) => slot_map.owner(slot).is_none_or(|node| node.admits()),
            SlotMapState::Unknown | SlotMapState::Failed(_) => true,
        }
    }

    /// Executes `operation` on the node of `slot`, and follows redirects.
    pub(crate) async fn execute(
        &self,
        operation: Operation<'_>,
        slot: u16,
        priority: bool,
    ) -> Result<Value, StoreError> {
        let mut node = self.owner(slot).await?;
        let mut options = SendOptions { asking: false, priority };
        for hop in 1.. {
            let error = match node.execute(operation, options).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let class = error.class();
            if may_mean_stale_slots(&error, class.as_ref()) {
                self.shared.is_stale.notify_one();
            }
            let next = match class {
                Some(ErrorClass::Moved(address)) if hop < MAX_HOPS => Some((address, false)),
                Some(ErrorClass::Ask(address)) if hop < MAX_HOPS => Some((address, true)),
                Some(ErrorClass::TryAgain) if hop < MAX_HOPS => {
                    sleep(TRY_AGAIN_AFTER).await;
                    continue;
                }
                _ => None,
            };
            let Some((address, asking)) = next else {
                return Err(error.into_store_error(node.timeout()));
            };
            node = self.shared.node_at(&address, node.name())?;
            options.asking = asking;
            if !priority && !node.admits() {
                return Err(StoreError::BreakerOpen);
            }
        }
        Err(StoreError::BreakerOpen)
    }

    /// The node of `slot`. Waits for the slot map if it is not known yet.
    async fn owner(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        let unserved = || {
            // A replica may be about to take it over.
            self.shared.is_stale.notify_one();
            StoreError::Refused(format!("no node of the cluster serves slot {slot}"))
        };
        let owner = |known: &SlotMapState| match known {
            SlotMapState::Unknown => None,
            SlotMapState::Known(slot_map) => {
                Some(slot_map.owner(slot).cloned().ok_or_else(unserved))
            }
            SlotMapState::Failed(error) => {
                Some(Err(StoreError::Unavailable(Arc::clone(error) as Arc<_>)))
            }
        };
        if let Some(owner) = owner(&self.slot_map.borrow()) {
            return owner;
        }
        let mut slot_map = self.slot_map.clone();
        let limit = self.shared.config.timeout;
        let known = timeout(limit, slot_map.wait_for(|known| owner(known).is_some())).await;
        let known = known.map_err(|_| StoreError::Timeout(limit))?;
        owner(&*known.map_err(StoreError::unavailable)?).unwrap_or_else(|| Err(unserved()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

/// Returns `true` if another node may serve the slot now.
fn may_mean_stale_slots(error: &PoolError, class: Option<&ErrorClass>) -> bool {
    match (error, class) {
        (PoolError::Call(CallError::Full), _) => false,
        (_, Some(class)) => {
            matches!(
                class,
                ErrorClass::Moved(_)
                    | ErrorClass::NotMaster
                    | ErrorClass::Unavailable
                    | ErrorClass::Rejected
            )
        }
        (_, None) => true,
    }
}

// === refresh ===

/// Loads the slot map, and reloads it when it may have changed.
async fn refresh(shared: Arc<Shared>, publish: watch::Sender<SlotMapState>) {
    const MIN_INTERVAL: Duration = Duration::from_millis(100);
    const MAX_BACKOFF: Duration = Duration::from_secs(1);
    const MAX_INTERVAL: Duration = Duration::from_secs(15);
    let mut pause = MIN_INTERVAL;
    loop {
        let known = publish.borrow().clone();
        let slot_map =
            if let SlotMapState::Known(slot_map) = known { Some(slot_map) } else { None };
        match shared.discover(slot_map.as_deref()).await {
            Ok(ranges) => {
                pause = MIN_INTERVAL;
                let found = shared.slot_map(ranges);
                if slot_map.is_none_or(|slot_map| *slot_map != found) {
                    tracing::info!(
                        nodes = found.nodes().len(),
                        "loaded the slot map of the Redis cluster"
                    );
                    publish.send_replace(SlotMapState::Known(Arc::new(found)));
                }
            }
            Err(error) => {
                pause = (pause * 2).min(MAX_BACKOFF);
                tracing::warn!(%error, retry_in = ?pause, "failed to load the slot map of the Redis cluster");
                if slot_map.is_none() {
                    publish.send_replace(SlotMapState::Failed(Arc::new(error)));
                    shared.is_stale.notify_one();
                }
            }
        }
        sleep(pause).await;
        let _ = timeout(MAX_INTERVAL, shared.is_stale.notified()).await;
    }
}

impl Shared {
    /// Asks known nodes that are up, then those of the configuration.
    async fn discover(&self, slot_map: Option<&SlotMap>) -> Result<Vec<SlotRange>, DialError> {
        for node in slot_map.into_iter().flat_map(SlotMap::nodes) {
            if node.error().is_none()
                && let Ok(slots) = node.query(cmd("CLUSTER").arg("SLOTS")).await
                && let Some(ranges) = slot_map::ranges(&slots, host_of(node.name()))
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
            Ok(slots) => slot_map::ranges(&slots, host_of(&address)).ok_or(DialError::NoNode),
            Err(DialError::Refused { cause, .. }) if cause.text().contains("cluster support") => {
                Err(DialError::NoCluster(address))
            }
            Err(error) => Err(error),
        }
    }

    /// The slot map of these ranges. Nodes that serve none are dropped.
    fn slot_map(&self, ranges: Vec<SlotRange>) -> SlotMap {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = ranges.into_iter().map(|range| {
            let node = self.node(&mut nodes, &range.host, range.port);
            (range.first, range.last, node)
        });
        let slot_map = SlotMap::new(owned.collect());
        nodes.retain(|name, _| slot_map.nodes().iter().any(|node| node.name() == name));
        slot_map
    }

    /// The node at `address`, from a redirect by the node `asked`.
    fn node_at(&self, address: &str, asked: &str) -> Result<Arc<Node>, StoreError> {
        let invalid = || StoreError::Refused(format!("invalid address of a node: {address:?}"));
        let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let host = if host.is_empty() { host_of(asked) } else { host };
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.node(&mut nodes, host, port))
    }

    fn node(&self, nodes: &mut HashMap<String, Arc<Node>>, host: &str, port: u16) -> Arc<Node> {
        let host = host.trim_matches(['[', ']']).to_owned();
        let server = with_address(&self.seeds[0], host, port);
        let endpoint = Endpoint::At(Box::new(server));
        let open = || Arc::new(Node::open(&self.config, &self.dialer, &endpoint, 1));
        Arc::clone(nodes.entry(endpoint.name()).or_insert_with(open))
    }
}

fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}
