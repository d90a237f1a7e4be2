//! One server: its connections, its circuit breaker and its memory.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use headgate::{Circuit, SystemClock};
use redis::{Cmd, Value};
use tokio::{task::AbortHandle, time::sleep};

use crate::{
    RedisConfig,
    call::{Call, ScriptKind},
    connection::CallError,
    dial::Dialer,
    endpoint::Endpoint,
    error::ErrorClass,
    memory::Memory,
    pool::{Pool, PoolError, SendOptions},
};

/// One Redis server.
pub(crate) struct Node {
    name: String,
    pool: Arc<Pool>,
    circuit: Arc<Circuit>,
    clock: SystemClock,
    memory: Arc<Mutex<Option<Memory>>>,
    watcher: AbortHandle,
}

/// An operation of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    Script(&'a Call<'a>),
    Command(&'a Cmd),
}

// === impl Node ===

impl Node {
    pub(crate) fn open(
        config: &RedisConfig,
        dialer: &Dialer,
        endpoint: &Endpoint,
        members: usize,
    ) -> Self {
        let circuit = Arc::new(Circuit::new(config.tolerance, config.pause));
        let pool = Arc::new(Pool::open(config, dialer, endpoint, members, &circuit));
        let memory = Arc::new(Mutex::new(None));
        let name = endpoint.name();
        let watched = watch_memory(name.clone(), Arc::clone(&pool), Arc::clone(&memory));
        Self {
            name,
            pool,
            circuit,
            clock: SystemClock::new(),
            memory,
            watcher: tokio::spawn(watched).abort_handle(),
        }
    }

    /// Address without credentials.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Memory, as last reported.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads the memory now.
    pub(crate) async fn load_memory(&self) -> Option<Memory> {
        Memory::load(&self.pool).await
    }

    /// Error of the server, if it is down.
    pub(crate) fn error(&self) -> Option<String> {
        let error = self.pool.error().map(|error| error.to_string());
        error.or_else(|| self.circuit.is_open().then(|| format!("{} does not reply", self.name)))
    }

    /// Returns `true` if the circuit breaker admits a call.
    pub(crate) fn admits(&self) -> bool {
        self.circuit.admits(&self.clock)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.pool.timeout()
    }

    /// Executes `operation`, and records the result in the circuit breaker.
    pub(crate) async fn execute(
        &self,
        operation: Operation<'_>,
        options: SendOptions,
    ) -> Result<Value, PoolError> {
        let reply = match operation {
            Operation::Script(call) => self.run(call, options).await,
            Operation::Command(command) => self.pool.send(command, 1, options).await,
        };
        self.record(&reply);
        reply
    }

    /// Runs the script. On a server that is out of memory, retries with the script for existing
    /// keys.
    async fn run(&self, call: &Call<'_>, options: SendOptions) -> Result<Value, PoolError> {
        let reply = self.run_script(call, ScriptKind::Full, options).await;
        if class(&reply) == Some(ErrorClass::OutOfMemory) {
            return self.run_script(call, ScriptKind::ExistingKeys, options).await;
        }
        reply
    }

    /// Sends a command, without recording the result.
    pub(crate) async fn query(&self, command: &Cmd) -> Result<Value, PoolError> {
        self.pool.send(command, 1, SendOptions::default()).await
    }

    async fn run_script(
        &self,
        call: &Call<'_>,
        kind: ScriptKind,
        options: SendOptions,
    ) -> Result<Value, PoolError> {
        let reply = self.pool.send(&call.evalsha(kind), call.weight(), options).await;
        if class(&reply) == Some(ErrorClass::NoScript) {
            return self.pool.send(&call.eval(kind), call.weight(), options).await;
        }
        reply
    }

    fn record(&self, reply: &Result<Value, PoolError>) {
        let class = class(reply);
        if class == Some(ErrorClass::NotMaster) {
            self.pool.reconnect();
        }
        let failed = match reply {
            Ok(_) => false,
            Err(PoolError::Call(CallError::Full)) => return,
            Err(PoolError::Call(CallError::Server(_))) => {
                matches!(class, Some(ErrorClass::NotMaster | ErrorClass::Unavailable))
            }
            Err(_) => true,
        };
        self.circuit.record(failed, &self.clock);
    }
}

fn class(reply: &Result<Value, PoolError>) -> Option<ErrorClass> {
    reply.as_ref().err().and_then(PoolError::class)
}

/// Polls the memory of the server.
async fn watch_memory(name: String, pool: Arc<Pool>, memory: Arc<Mutex<Option<Memory>>>) {
    const INTERVAL: Duration = Duration::from_secs(15);
    let mut pause = Duration::from_millis(250);
    loop {
        if let Some(seen) = Memory::load(&pool).await {
            pause = INTERVAL;
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            seen.warn_if_new(&name, memory.as_ref());
            *memory = Some(seen);
        }
        sleep(pause).await;
        pause = (pause * 2).min(INTERVAL);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
