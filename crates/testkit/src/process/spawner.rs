//! The thread that starts all child processes.
//!
//! The kernel sends the parent-death signal when the *thread* that started a child ends, and the
//! thread of a test ends before its process. This one runs as long as the process.

use std::{
    ffi::OsStr,
    io,
    process::{Child, Command, Stdio},
    sync::{LazyLock, mpsc},
    thread,
};

struct Job {
    command: Command,
    reply: mpsc::Sender<io::Result<Child>>,
}

static SPAWNER: LazyLock<mpsc::Sender<Job>> = LazyLock::new(|| {
    let (jobs, queue) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("testkit-spawner".into())
        .spawn(move || {
            for Job { mut command, reply } in queue {
                // Kill the child of a caller that is gone.
                if let Err(mpsc::SendError(Ok(mut orphan))) = reply.send(command.spawn()) {
                    let _ = orphan.kill();
                    let _ = orphan.wait();
                }
            }
        })
        .expect("start a thread");
    jobs
});

/// True if `setpriv --pdeathsig` works: util-linux 2.33 or later. Otherwise children may outlive a
/// killed test process.
static HAS_PARENT_DEATH_SIGNAL: LazyLock<bool> = LazyLock::new(|| {
    tie("KILL", OsStr::new("true"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
});

pub(super) fn tied_command(signal: &str, program: &OsStr) -> Command {
    if *HAS_PARENT_DEATH_SIGNAL { tie(signal, program) } else { Command::new(program) }
}

pub(super) fn spawn(command: Command) -> io::Result<Child> {
    let (reply, answer) = mpsc::channel();
    SPAWNER.send(Job { command, reply }).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

/// `setpriv` execs the program, so the process id is that of the program.
fn tie(signal: &str, program: &OsStr) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]).arg(program);
    command
}
