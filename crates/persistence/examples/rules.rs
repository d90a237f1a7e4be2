//! The cost of rules: memory, start time, change time and check time at 10, 10,000 and 100,000 of
//! them, on SQLite. `bench/run --only rules` runs it.
//!
//!     cargo run --release -p headgate-persistence --example rules [NUMBER_OF_RULES...]

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "the report is the product")]

use std::{env, fs, path::Path, process::Command, sync::Arc, time::Duration};

use headgate::{BatchLimiter, Clock as _, Cost, FailMode, Key, LeasePolicy, Limit, SystemClock};
use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::{
    Author, Catalog, Defaults, Draft, RateLimitRuleRepository, RuleChange, RuleDelta, Scope,
    usecase::{
        CheckRateLimit, ManageRules,
        check::{Question, RuleSelection},
    },
};
use headgate_store_memory::MemoryStore;
use tokio::time::Instant;

/// Starts the example again, so that memory is measured in a fresh process.
const MEASURE: &str = "--measure";

const CHANGES: usize = 300;

const CHECKS: usize = 1_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, file, count] = &arguments[..]
        && first == MEASURE
    {
        return runtime.block_on(measure(Path::new(file), count.parse().unwrap()));
    }
    println!(
        "| rules | memory | start | snapshot p50, p99 | create p50, p99 | update p50, p99 | delete p50, p99 | check |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let counts: Vec<usize> = arguments.iter().map(|count| count.parse().unwrap()).collect();
    for count in if counts.is_empty() { vec![10, 10_000, 100_000] } else { counts } {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.db");
        runtime.block_on(fill(&file, count));
        let child = Command::new(env::current_exe().unwrap())
            .args([MEASURE, file.to_str().unwrap(), &count.to_string()])
            .status();
        assert!(child.unwrap().success());
    }
}

/// Writes rules in one batch; a tenth have prefixes.
async fn fill(file: &Path, count: usize) {
    let database = Database::open(&DatabaseConfig::file(file).max_rules(u64::MAX));
    database.migrate().await.unwrap();
    let create = |i| RuleChange::Create(draft(&pattern(i)).validate(None).unwrap());
    let changes: Vec<RuleChange> = (0..count).map(create).collect();
    database.write(&changes, &author()).await.unwrap();
    database.close().await;
}

async fn measure(file: &Path, count: usize) {
    let database = Arc::new(Database::open(&DatabaseConfig::file(file).max_rules(u64::MAX)));
    let defaults = Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    let catalog = Arc::new(Catalog::new(defaults.clone(), Arc::new(SystemClock::new())).unwrap());
    database.ping().await.unwrap();
    let (resident, began) = (resident(), Instant::now());
    catalog.refresh(&*database).await.unwrap();
    let start = began.elapsed();
    let memory = crate::resident().saturating_sub(resident);
    assert_eq!(catalog.load().len(), count);

    let snapshot = snapshots(&catalog, &defaults);
    let [create, update, delete] = changes(&catalog, database).await;
    let check = checks(catalog, count).await;
    println!(
        "| {count} | {:.1} MB | {} ms | {} | {} | {} | {} | {check} ns |",
        memory as f64 / 1e6,
        start.as_millis(),
        shown(snapshot),
        shown(create),
        shown(update),
        shown(delete),
    );
}

/// Measures compiling the next snapshot.
fn snapshots(catalog: &Catalog, defaults: &Defaults) -> Vec<Duration> {
    let snapshot = catalog.load();
    let some = snapshot.counted().find_map(|rule| rule.rule()).unwrap();
    let once = |i: usize| {
        let mut rule = some.clone();
        rule.spec.limit = i as u32 + 1;
        let delta = RuleDelta { changed: vec![rule], ..RuleDelta::default() };
        let began = Instant::now();
        drop(snapshot.after(delta, defaults).unwrap());
        began.elapsed()
    };
    (0..CHANGES).map(once).collect()
}

/// Measures a change until it is committed and active.
async fn changes(catalog: &Arc<Catalog>, database: Arc<Database>) -> [Vec<Duration>; 3] {
    let rules = ManageRules::new(Arc::clone(catalog), database);
    let mut took: [Vec<Duration>; 3] = Default::default();
    for i in 0..CHANGES {
        let name = format!("new{i}");
        let began = Instant::now();
        let rule = rules.create(draft(&name), &author()).await.unwrap();
        took[0].push(began.elapsed());
        let changed = Draft { limit: 7.into(), ..draft(&name) };
        let began = Instant::now();
        rules.update(rule.id, changed, &author()).await.unwrap();
        took[1].push(began.elapsed());
        let began = Instant::now();
        rules.delete(rule.id, &author()).await.unwrap();
        took[2].push(began.elapsed());
    }
    took
}

/// Measures a check of a subject with a rule, in memory.
async fn checks(catalog: Arc<Catalog>, count: usize) -> u128 {
    let store = Arc::new(MemoryStore::builder().build());
    let check = CheckRateLimit::new(catalog, BatchLimiter::new(store));
    let names: Vec<String> = (0..count).map(|i| pattern(i).replace('*', "7")).collect();
    let began = Instant::now();
    for i in 0..CHECKS {
        // A step that is coprime to the number of rules visits all of them.
        let name = &names[i * 7_919 % count];
        let subject = Key::new(name).unwrap();
        let selection = RuleSelection::Matching;
        check
            .check(&Question { scope: Scope::User, subject, selection, cost: Cost::ONE })
            .await
            .unwrap();
    }
    began.elapsed().as_nanos() / CHECKS as u128
}

fn pattern(i: usize) -> String {
    if i.is_multiple_of(10) { format!("tenant-{i}:*") } else { format!("tenant-{i}:user") }
}

fn draft(pattern: &str) -> Draft {
    Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: pattern.to_owned().into(),
        limit: 1_000_000.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    }
}

fn author() -> Author {
    let at = SystemClock::new().now();
    Author { actor: "bench".to_owned(), request_id: "req_bench".to_owned(), at }
}

fn shown(mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    let millis = |took: Duration| took.as_micros() as f64 / 1e3;
    format!("{:.2}, {:.2} ms", millis(at(50)), millis(at(99)))
}

/// Resident bytes of this process.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * PAGE
}
