//! One server of Redis: its link, its circuit breaker, and what is known of its memory.

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
    call::{Call, Form},
    connection::CallError,
    dial::Dialer,
    error::Meaning,
    link::{Link, LinkError, Manner},
    memory::Memory,
    source::Source,
};

/// One server of Redis.
pub(crate) struct Node {
    name: String,
    link: Arc<Link>,
    circuit: Arc<Circuit>,
    clock: SystemClock,
    memory: Arc<Mutex<Option<Memory>>>,
    watcher: AbortHandle,
}

/// What a server is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    Script(&'a Call<'a>),
    Command(&'a Cmd),
}

// === impl Node ===

impl Node {
    pub(crate) fn open(
        config: &RedisConfig,
        dialer: &Dialer,
        source: &Source,
        lines: usize,
    ) -> Self {
        let circuit = Arc::new(Circuit::new(config.tolerance, config.pause));
        let link = Arc::new(Link::open(config, dialer, source, lines, &circuit));
        let memory = Arc::new(Mutex::new(None));
        let name = source.name();
        let watched = watch_memory(name.clone(), Arc::clone(&link), Arc::clone(&memory));
        Self {
            name,
            link,
            circuit,
            clock: SystemClock::new(),
            memory,
            watcher: tokio::spawn(watched).abort_handle(),
        }
    }

    /// Where it is; no secret.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What Redis last said about its memory.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why it does not answer, if it does not.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.link.trouble().map(|error| error.to_string());
        trouble.or_else(|| self.circuit.is_open().then(|| format!("{} does not answer", self.name)))
    }

    /// Whether it may be asked now. Of many who ask about a node that fails, one may try it.
    pub(crate) fn admits(&self) -> bool {
        self.circuit.admits(&self.clock)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.link.timeout()
    }

    /// Does `order`, and takes note of how it went.
    pub(crate) async fn perform(
        &self,
        order: Order<'_>,
        manner: Manner,
    ) -> Result<Value, LinkError> {
        let answer = match order {
            Order::Script(call) => self.run(call, manner).await,
            Order::Command(command) => self.link.send(command, manner).await,
        };
        self.note(&answer);
        answer
    }

    /// Runs the script. A server that does not know it yet is sent all of it. One that is full is
    /// asked again to go on with subjects that it has.
    async fn run(&self, call: &Call<'_>, manner: Manner) -> Result<Value, LinkError> {
        let answer = self.run_script(call, Form::Usual, manner).await;
        if meaning(&answer) == Some(Meaning::Full) {
            return self.run_script(call, Form::KnownSubjects, manner).await;
        }
        answer
    }

    /// Sends a command of which nothing is concluded.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, LinkError> {
        self.link.send(command, Manner::default()).await
    }

    async fn run_script(
        &self,
        call: &Call<'_>,
        form: Form,
        manner: Manner,
    ) -> Result<Value, LinkError> {
        let answer = self.link.send(&call.by_name(form), manner).await;
        if meaning(&answer) == Some(Meaning::NoScript) {
            return self.link.send(&call.in_full(form), manner).await;
        }
        answer
    }

    fn note(&self, answer: &Result<Value, LinkError>) {
        let meaning = meaning(answer);
        if meaning == Some(Meaning::Demoted) {
            self.link.reconnect();
        }
        let failed = match answer {
            Ok(_) => false,
            Err(LinkError::Call(CallError::Full)) => return,
            Err(LinkError::Call(CallError::Server(_))) => {
                matches!(meaning, Some(Meaning::Demoted | Meaning::Away))
            }
            Err(_) => true,
        };
        self.circuit.record(failed, &self.clock);
    }
}

fn meaning(answer: &Result<Value, LinkError>) -> Option<Meaning> {
    answer.as_ref().err().and_then(LinkError::meaning)
}

/// Asks the server about its memory, now and then.
async fn watch_memory(name: String, link: Arc<Link>, memory: Arc<Mutex<Option<Memory>>>) {
    const EVERY: Duration = Duration::from_secs(15);
    let mut pause = Duration::from_millis(250);
    loop {
        if let Some(seen) = Memory::ask(&link).await {
            pause = EVERY;
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            seen.warn_if_new(&name, memory.as_ref());
            *memory = Some(seen);
        }
        sleep(pause).await;
        pause = (pause * 2).min(EVERY);
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
