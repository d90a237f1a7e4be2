//! Metrics of the runtimes that run the server's tasks.

use prometheus::{
    CounterVec, Error, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use tokio::runtime::Handle;

/// The runtimes of one purpose.
#[derive(Clone, Debug)]
pub struct Runtimes {
    /// Value of the label `runtime`.
    pub name: &'static str,
    /// The runtimes.
    pub handles: Vec<Handle>,
}

/// Collects the state of the runtimes when metrics are scraped.
pub(super) struct RuntimeCollector {
    runtimes: Vec<Runtimes>,
    workers: IntGaugeVec,
    tasks: IntGaugeVec,
    queued: IntGaugeVec,
}

const LABELS: [&str; 1] = ["runtime"];

impl RuntimeCollector {
    pub(super) fn new(runtimes: Vec<Runtimes>) -> Result<Self, Error> {
        let gauge = |name: &str, help: &str| IntGaugeVec::new(Opts::new(name, help), &LABELS);
        Ok(Self {
            runtimes,
            workers: gauge("headgate_runtime_workers", "Threads that run tasks, by runtime.")?,
            tasks: gauge("headgate_runtime_tasks", "Tasks that have not ended, by runtime.")?,
            queued: gauge(
                "headgate_runtime_queue_depth",
                "Tasks in the runtime's shared queue, which wait for a thread, by runtime.",
            )?,
        })
    }

    /// The runtimes count themselves; a counter is created for each scrape.
    fn busy(&self) -> Option<CounterVec> {
        let busy = Opts::new(
            "headgate_runtime_busy_seconds_total",
            "Time that the runtime's threads were not idle, by runtime.",
        );
        let busy = CounterVec::new(busy, &LABELS).ok()?;
        for Runtimes { name, handles } in &self.runtimes {
            let metrics = handles.iter().map(Handle::metrics);
            let seconds = metrics.map(|metrics| {
                let workers = 0..metrics.num_workers();
                workers.map(|n| metrics.worker_total_busy_duration(n).as_secs_f64()).sum::<f64>()
            });
            busy.with_label_values(&[name]).inc_by(seconds.sum());
        }
        Some(busy)
    }
}

impl Collector for RuntimeCollector {
    fn desc(&self) -> Vec<&Desc> {
        [self.workers.desc(), self.tasks.desc(), self.queued.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let set = |gauge: &IntGaugeVec, name, counts: &mut dyn Iterator<Item = usize>| {
            gauge.with_label_values(&[name]).set(counts.sum::<usize>() as i64);
        };
        for Runtimes { name, handles } in &self.runtimes {
            let metrics = || handles.iter().map(Handle::metrics);
            set(&self.workers, name, &mut metrics().map(|runtime| runtime.num_workers()));
            set(&self.tasks, name, &mut metrics().map(|runtime| runtime.num_alive_tasks()));
            set(&self.queued, name, &mut metrics().map(|runtime| runtime.global_queue_depth()));
        }
        let mut families =
            [self.workers.collect(), self.tasks.collect(), self.queued.collect()].concat();
        families.extend(self.busy().iter().flat_map(Collector::collect));
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn counts_the_tasks_of_its_runtimes() {
        let waiting = tokio::spawn(std::future::pending::<()>());
        let runtimes = Runtimes { name: "here", handles: vec![Handle::current()] };
        let families = RuntimeCollector::new(vec![runtimes]).unwrap().collect();
        let value = |name: &str| {
            let family = families.iter().find(|family| family.name() == name).expect(name);
            let metric = &family.get_metric()[0];
            assert_eq!(metric.get_label()[0].value(), "here");
            metric.get_gauge().get_value()
        };
        assert!((value("headgate_runtime_workers") - 1.0).abs() < 1e-9);
        assert!(value("headgate_runtime_tasks") >= 1.0);
        assert!(families.iter().any(|f| f.name() == "headgate_runtime_busy_seconds_total"));
        waiting.abort();
    }
}
