//! Tasks on one thread, polled in a fixed order.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Wake, Waker},
};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs tasks until they wait for something.
#[derive(Default)]
pub(crate) struct Executor {
    tasks: Vec<Option<Task>>,
    free: Vec<usize>,
    ready: Arc<Ready>,
}

/// Tasks to poll, in order.
#[derive(Default)]
struct Ready(Mutex<VecDeque<usize>>);

struct TaskWaker {
    task: usize,
    ready: Arc<Ready>,
}

impl Executor {
    /// Starts a task, and runs it until it waits.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() - 1
        });
        self.tasks[place] = Some(Box::pin(task));
        self.poll(place);
    }

    /// Runs the tasks that have been woken, and those that they wake.
    pub(crate) fn run(&mut self) {
        while let Some(task) = self.ready.pop() {
            self.poll(task);
        }
    }

    fn poll(&mut self, place: usize) {
        let waker = TaskWaker { task: place, ready: Arc::clone(&self.ready) };
        let waker = Waker::from(Arc::new(waker));
        // A task that has ended may be woken once more.
        let Some(task) = &mut self.tasks[place] else { return };
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks[place] = None;
            self.free.push(place);
        }
    }
}

impl Ready {
    fn pop(&self) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
    }
}
