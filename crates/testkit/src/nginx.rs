//! nginx with its Lua module, for gateway plugins.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    Skip, free_port, port,
    process::{self, Process},
    skip::find_program,
    wait_until,
};

/// Timeout of a start, which takes 20 ms on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum number of ports tried.
const ATTEMPTS: usize = 10;

/// Folders of modules.
const MODULE_FOLDERS: [&str; 3] =
    ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/local/lib/nginx/modules"];

const MODULES: [&str; 2] = ["ndk_http_module.so", "ngx_http_lua_module.so"];

/// An nginx process, killed when dropped.
#[derive(Debug)]
pub struct Nginx {
    _process: Process,
    port: u16,
    folder: TempDir,
}

// === impl Nginx ===

impl Nginx {
    /// Starts nginx. `http` returns the contents of the `http` section for a port.
    ///
    /// # Errors
    ///
    /// [`Skip`] if nginx or its Lua module is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start, with its log.
    pub fn start(http: impl Fn(u16) -> String) -> Result<Self, Skip> {
        let (program, modules) = find()?;
        for _ in 0..ATTEMPTS {
            let port = free_port();
            match launch(&program, &configuration(&modules, &http(port)), port) {
                Ok(nginx) => return Ok(nginx),
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("nginx does not start; its log:\n{log}"),
            }
        }
        panic!("nginx found no free port in {ATTEMPTS} attempts")
    }

    /// Starts nginx as a TLS server in front of an HTTP server on port `backend` of this machine.
    /// `client_authority` is the file of the authority whose certificates clients must have.
    ///
    /// # Errors
    ///
    /// [`Skip`] if nginx or its Lua module is not installed.
    pub fn start_tls(
        backend: u16,
        (certificate, key): &(PathBuf, PathBuf),
        client_authority: Option<&Path>,
    ) -> Result<Self, Skip> {
        let clients = client_authority.map_or_else(String::new, |authority| {
            format!("ssl_client_certificate {}; ssl_verify_client on;", authority.display())
        });
        let (certificate, key) = (certificate.display(), key.display());
        Self::start(|port| {
            format!(
                "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; \
                 ssl_certificate_key {key}; {clients} location / {{ \
                 proxy_pass http://127.0.0.1:{backend}; proxy_http_version 1.1; \
                 proxy_set_header Host $http_host; }} }}"
            )
        })
    }

    /// Its address.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The log so far.
    ///
    /// # Panics
    ///
    /// If the log cannot be read.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log of nginx")
    }
}

fn find() -> Result<(PathBuf, Vec<PathBuf>), Skip> {
    // Often only on the `PATH` of root.
    let sbin = PathBuf::from("/usr/sbin/nginx");
    let program = find_program("nginx").or_else(|skip| sbin.is_file().then_some(sbin).ok_or(skip));
    let mut folders = MODULE_FOLDERS.iter().map(Path::new);
    let folder = folders.find(|folder| MODULES.iter().all(|name| folder.join(name).is_file()));
    let folder = folder.ok_or_else(|| Skip::new("nginx", "its Lua module is not installed"))?;
    Ok((program?, MODULES.iter().map(|name| folder.join(name)).collect()))
}

fn configuration(modules: &[PathBuf], http: &str) -> String {
    let modules = modules.iter().map(|module| format!("load_module {};", module.display()));
    let modules = modules.collect::<Vec<_>>().join("\n");
    // The defaults are writable only by root.
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};"))
        .join("\n");
    format!(
        "{modules}\ndaemon off;\nmaster_process off;\npid pid;\nerror_log stderr info;\n\
         events {{ worker_connections 512; }}\n\
         http {{\naccess_log off;\n{temporary}\n{http}\n}}\n"
    )
}

/// The running server, or its log if it ended.
fn launch(program: &Path, configuration: &str, port: u16) -> Result<Nginx, String> {
    let folder = tempfile::Builder::new().prefix("headgate-nginx-").tempdir();
    let folder = folder.expect("create a temporary folder");
    let started = start(program, configuration, folder.path());
    let mut process = started.map_err(|error| format!("nginx cannot be run: {error}"))?;
    let mut ended = false;
    // It writes its process id after it has bound the port.
    let pid = folder.path().join("pid");
    let listens = wait_until(START_TIMEOUT, || {
        ended = process.has_exited();
        ended || pid.is_file() && port::is_open(port)
    });
    if ended || !listens {
        return Err(fs::read_to_string(folder.path().join("log")).unwrap_or_default());
    }
    Ok(Nginx { _process: process, port, folder })
}

fn start(program: &Path, configuration: &str, folder: &Path) -> io::Result<Process> {
    fs::write(folder.join("nginx.conf"), configuration)?;
    let log = File::create(folder.join("log"))?;
    let mut command = process::command(program);
    command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "stderr"]);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Process::start(command)
}
