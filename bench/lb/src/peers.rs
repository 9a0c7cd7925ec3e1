//! The load balancers: ours, HAProxy and nginx, each with one thread and the same work.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, ensure};
use fairlead_bench_kit::SERVER_CORE;
use fairlead_bench_kit::process::Running;

use crate::kinds::{ANSWERS, ECHO, Kind, Ports, SOURCE};

/// Where ours listens.
pub(crate) const OURS: Ports = Ports(7100);
const HAPROXY: Ports = Ports(7200);
const NGINX: Ports = Ports(7300);

/// A load balancer that runs.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) ports: Ports,
    pub(crate) running: Running,
    /// What it cannot do as it is installed.
    lacks: &'static [Kind],
}

impl Subject {
    /// Whether it can do this.
    pub(crate) fn can(&self, kind: Kind) -> bool {
        !self.lacks.contains(&kind)
    }
}

/// Certificates for all of them.
pub(crate) fn certificates(folder: &Path) -> anyhow::Result<()> {
    let made = Command::new("openssl").args(["genrsa", "2048"]).output().context("run openssl")?;
    ensure!(made.status.success(), "openssl makes no RSA key");
    let rsa = rcgen::KeyPair::from_pem(&String::from_utf8(made.stdout)?)?;
    for (name, key) in [("p256", rcgen::KeyPair::generate()?), ("rsa", rsa)] {
        let certificate = rcgen::CertificateParams::new(["bench.example".to_owned()])?.self_signed(&key)?.pem();
        fs::write(folder.join(format!("{name}.crt")), &certificate)?;
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem())?;
        // HAProxy wants both in one file.
        fs::write(folder.join(format!("{name}.pem")), certificate + &key.serialize_pem())?;
    }
    Ok(())
}

/// Starts ours: `program` is this benchmark, or another build of it.
pub(crate) fn ours(program: &Path, folder: &Path) -> anyhow::Result<Subject> {
    let arguments = ["--balance".to_owned(), folder.display().to_string()];
    let running = Running::start(program, &arguments, SERVER_CORE, folder)?;
    Ok(Subject { name: "fairlead", ports: OURS, running, lacks: &[] })
}

/// Starts HAProxy, if it is here.
pub(crate) fn haproxy(folder: &Path) -> anyhow::Result<Option<Subject>> {
    let Some(program) = find("haproxy") else { return Ok(None) };
    let config = folder.join("haproxy.cfg");
    fs::write(&config, haproxy_config(folder))?;
    let arguments = ["-db".to_owned(), "-f".to_owned(), config.display().to_string()];
    let running = Running::start(&program, &arguments, SERVER_CORE, folder)?;
    Ok(Some(Subject { name: "haproxy", ports: HAPROXY, running, lacks: &[] }))
}

/// Starts nginx, if it is here. Its module for streams is a package of its own.
pub(crate) fn nginx(folder: &Path) -> anyhow::Result<Option<Subject>> {
    let Some(program) = find("nginx") else { return Ok(None) };
    let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
    let module = module.is_file().then_some(module);
    let config = folder.join("nginx.conf");
    fs::write(&config, nginx_config(folder, module))?;
    let arguments = ["-c".to_owned(), config.display().to_string(), "-p".to_owned(), folder.display().to_string()];
    let running = Running::start(&program, &arguments, SERVER_CORE, folder)?;
    let lacks: &[Kind] = if module.is_some() { &[] } else { &[Kind::TcpKeep, Kind::TcpConnect, Kind::TcpStream] };
    Ok(Some(Subject { name: "nginx", ports: NGINX, running, lacks }))
}

fn haproxy_config(folder: &Path) -> String {
    let (folder, ports) = (folder.display(), HAPROXY);
    let (echo, source, http, https, rsa) = (ports.echo(), ports.source(), ports.http(), ports.https(), ports.rsa());
    format!(
        "global\n  nbthread 1\n  maxconn 4000\n  ssl-default-bind-options ssl-min-ver TLSv1.2\n\
         defaults\n  mode http\n  option splice-auto\n  http-reuse always\n\
         \x20 timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  timeout http-keep-alive 60s\n\
         listen echo\n  mode tcp\n  bind 127.0.0.1:{echo}\n  server one 127.0.0.1:{ECHO}\n\
         listen source\n  mode tcp\n  bind 127.0.0.1:{source}\n  server one 127.0.0.1:{SOURCE}\n\
         frontend web\n  option forwardfor\n  bind 127.0.0.1:{http}\n\
         \x20 bind 127.0.0.1:{https} ssl crt {folder}/p256.pem alpn h2,http/1.1\n\
         \x20 bind 127.0.0.1:{rsa} ssl crt {folder}/rsa.pem alpn h2,http/1.1\n  default_backend answers\n\
         backend answers\n  server one 127.0.0.1:{ANSWERS}\n"
    )
}

fn nginx_config(folder: &Path, stream: Option<&Path>) -> String {
    let (folder, ports) = (folder.display(), NGINX);
    let (echo, source, http, https, rsa) = (ports.echo(), ports.source(), ports.http(), ports.https(), ports.rsa());
    let (load, streams) = match stream {
        None => (String::new(), String::new()),
        Some(module) => (
            format!("load_module {};\n", module.display()),
            format!(
                "stream {{\n  server {{ listen 127.0.0.1:{echo}; proxy_pass 127.0.0.1:{ECHO}; tcp_nodelay on; }}\n\
                 \x20 server {{ listen 127.0.0.1:{source}; proxy_pass 127.0.0.1:{SOURCE}; }}\n}}\n"
            ),
        ),
    };
    let location = "location / { proxy_pass http://answers; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
                    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }";
    format!(
        "{load}daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx-error.log warn;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  ssl_protocols TLSv1.2 TLSv1.3;\n  keepalive_requests 100000000;\n  keepalive_timeout 60s;\n\
         \x20 client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  fastcgi_temp_path {folder}/f;\n\
         \x20 uwsgi_temp_path {folder}/u;\n  scgi_temp_path {folder}/s;\n\
         \x20 upstream answers {{ server 127.0.0.1:{ANSWERS}; keepalive 128; keepalive_requests 100000000; }}\n\
         \x20 server {{ listen 127.0.0.1:{http}; {location} }}\n\
         \x20 server {{ listen 127.0.0.1:{https} ssl http2; ssl_certificate {folder}/p256.crt; \
         ssl_certificate_key {folder}/p256.key; {location} }}\n\
         \x20 server {{ listen 127.0.0.1:{rsa} ssl http2; ssl_certificate {folder}/rsa.crt; \
         ssl_certificate_key {folder}/rsa.key; {location} }}\n}}\n{streams}"
    )
}

/// A program by its name: what the variable of that name says, in PATH, or where Debian keeps servers.
fn find(name: &str) -> Option<PathBuf> {
    if let Some(named) = env::var_os(name.to_uppercase()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&paths).collect();
    places.push("/usr/sbin".into());
    places.into_iter().map(|place| place.join(name)).find(|path| path.is_file())
}
