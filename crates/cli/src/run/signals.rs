//! Signals that are passed on to a command.

pub(super) use platform::{Signals, Target};

#[cfg(unix)]
mod platform {
    use std::{
        io::{IsTerminal as _, stdin},
        process::Child,
        thread,
    };

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::{
        runtime::{self, Runtime},
        signal::unix::{SignalKind, signal},
        sync::mpsc,
    };

    /// The process of a command.
    #[derive(Clone, Copy)]
    pub(in crate::run) struct Target(Option<Pid>);

    impl Target {
        pub(in crate::run) fn of(child: &Child) -> Self {
            Self(i32::try_from(child.id()).ok().and_then(Pid::from_raw))
        }

        pub(in crate::run) fn terminate(self) {
            self.send(Signal::TERM);
        }

        fn send(self, signal: Signal) {
            if let Some(pid) = self.0 {
                // It may have ended.
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Signals that were received, in their order.
    pub(in crate::run) struct Signals(Option<(Runtime, mpsc::UnboundedReceiver<Signal>)>);

    impl Signals {
        /// Catches signals from now on, so that none ends this process and leaves the command
        /// behind.
        pub(in crate::run) fn catch() -> Self {
            // A terminal sends these to the command, too.
            let from_terminal = stdin().is_terminal();
            let all = [
                (SignalKind::terminate(), Signal::TERM, true),
                (SignalKind::hangup(), Signal::HUP, true),
                (SignalKind::user_defined1(), Signal::USR1, true),
                (SignalKind::user_defined2(), Signal::USR2, true),
                (SignalKind::interrupt(), Signal::INT, !from_terminal),
                (SignalKind::quit(), Signal::QUIT, !from_terminal),
            ];
            let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
                return Self(None);
            };
            let (sender, received) = mpsc::unbounded_channel();
            for (kind, same, passes) in all {
                let _entered = runtime.enter();
                let Ok(mut stream) = signal(kind) else { continue };
                let sender = sender.clone();
                runtime.spawn(async move {
                    while stream.recv().await.is_some() {
                        if passes && sender.send(same).is_err() {
                            break;
                        }
                    }
                });
            }
            Self(Some((runtime, received)))
        }

        /// Passes signals on from a thread of its own, until the process ends.
        pub(in crate::run) fn pass_on(self, target: Target) {
            let Some((runtime, mut received)) = self.0 else { return };
            thread::spawn(move || {
                runtime.block_on(async {
                    while let Some(signal) = received.recv().await {
                        target.send(signal);
                    }
                });
            });
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::process::Child;

    /// The process of a command, which cannot be signalled here.
    #[derive(Clone, Copy)]
    pub(in crate::run) struct Target;

    impl Target {
        pub(in crate::run) fn of(_: &Child) -> Self {
            Self
        }

        pub(in crate::run) fn terminate(self) {}
    }

    /// Nothing: there are no signals to pass on here.
    pub(in crate::run) struct Signals;

    impl Signals {
        pub(in crate::run) fn catch() -> Self {
            Self
        }

        pub(in crate::run) fn pass_on(self, _: Target) {}
    }
}
