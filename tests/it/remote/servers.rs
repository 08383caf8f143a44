//! Real servers on loopback, each with a folder and a port of its own; they end with the test.

use crate::workshop::tool;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Server {
    child: Child,
    pub port: u16,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Server {
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A port that nobody listens at, each time another one. Redis adds 10000 to it for its cluster.
pub fn free_port() -> u16 {
    static NEXT: Mutex<u16> = Mutex::new(0);
    let mut next = NEXT.lock().expect("nobody fails while holding it");
    if *next == 0 {
        *next = 20_000 + (std::process::id() % 3000) as u16 * 8;
    }
    loop {
        *next = if *next > 54_000 { 20_000 } else { *next + 1 };
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if is_free(*next) && is_free(*next + 10_000) {
            return *next;
        }
    }
}

fn wait_for(port: u16, what: &str) {
    let start = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(start.elapsed() < PATIENCE, "{what} does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(command: &mut Command, port: u16, folder: TempDir, what: &str) -> Server {
    let log = std::fs::File::create(folder.path().join("log")).expect("a log can be written");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("it is open")).stderr(log);
    let child = command.spawn().unwrap_or_else(|error| panic!("{what} does not start: {error}"));
    let server = Server { child, port, folder };
    wait_for(port, what);
    server
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("tasting-server-").tempdir().expect("a temporary folder")
}

/// A Redis server with these options.
pub fn redis(options: &[&str]) -> Server {
    let program = tool("redis-server");
    let (port, folder) = (free_port(), folder());
    let mut command = Command::new(program);
    command.current_dir(folder.path()).args([
        "--save",
        "",
        "--appendonly",
        "no",
        "--bind",
        "127.0.0.1",
    ]);
    if !options.contains(&"--tls-port") {
        command.args(["--port", &port.to_string()]);
    }
    let options = options.iter().map(|option| option.replace("PORT", &port.to_string()));
    command.args(options);
    start(&mut command, port, folder, "redis-server")
}

/// Sends a command to a Redis server, by its own client.
pub fn redis_cli(port: u16, words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string()])
        .args(words)
        .output()
        .expect("redis-cli starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Three Redis servers that are one cluster.
pub fn redis_cluster() -> [Server; 3] {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    let servers = [redis(&options), redis(&options), redis(&options)];
    let addresses: Vec<String> =
        servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    let words = [
        &["--cluster", "create"],
        &addresses.iter().map(String::as_str).collect::<Vec<_>>()[..],
        &["--cluster-yes"],
    ];
    let told = redis_cli(servers[0].port, &words.concat());
    let start = Instant::now();
    while !servers
        .iter()
        .all(|server| redis_cli(server.port, &["cluster", "info"]).contains("cluster_state:ok"))
    {
        assert!(start.elapsed() < PATIENCE, "the cluster does not come about: {told}");
        std::thread::sleep(Duration::from_millis(50));
    }
    servers
}

/// nginx with WebDAV; requests need the token, if there is one; with TLS, if there are
/// certificates.
pub fn nginx(token: Option<&str>, certificates: Option<&Certificates>) -> Server {
    // Where only root has it on PATH.
    let program = Path::new("/usr/sbin/nginx");
    let program = if program.exists() { program.to_owned() } else { tool("nginx") };
    let (port, folder) = (free_port(), folder());
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(at("files")).expect("a folder can be made");
    let secure = certificates.map_or(String::new(), |certificates| {
        let (certificate, key) = (certificates.path("server.pem"), certificates.path("server.key"));
        format!("ssl_certificate {}; ssl_certificate_key {};", certificate.display(), key.display())
    });
    let check = token.map_or(String::new(), |token| {
        format!("if ($http_authorization != 'Bearer {token}') {{ return 401; }}")
    });
    let config = format!(
        "daemon off; master_process off; pid {pid}; error_log {log};\nevents {{}}\nhttp {{ access_log off; client_body_temp_path {body};\n\
         proxy_temp_path {body}; fastcgi_temp_path {body}; uwsgi_temp_path {body}; scgi_temp_path {body}; client_max_body_size 100m;\n\
         server {{ listen 127.0.0.1:{port}{ssl}; {secure} root {files};\n\
         location / {{ {check} dav_methods PUT DELETE; create_full_put_path on; }}\n\
         location /empty/ {{ return 200; }}\nlocation /broken/ {{ return 500; }} }} }}\n",
        pid = at("pid"),
        log = at("error.log"),
        body = at("body"),
        files = at("files"),
        ssl = if certificates.is_some() { " ssl" } else { "" },
    );
    std::fs::write(at("nginx.conf"), config).expect("a file can be written");
    let mut command = Command::new(program);
    command.args(["-c", &at("nginx.conf"), "-p", &at("")]);
    start(&mut command, port, folder, "nginx")
}

/// Makes a bucket and a user who may use it; after that, moto lets nobody else in.
const S3_USER: &str = r#"
import boto3, json, sys
how = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="nobody", aws_secret_access_key="nothing")
s3, iam = boto3.client("s3", **how), boto3.client("iam", **how)
s3.create_bucket(Bucket="results")
iam.create_user(UserName="us")
everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
iam.put_user_policy(UserName="us", PolicyName="everything", PolicyDocument=json.dumps(everything))
key = iam.create_access_key(UserName="us")["AccessKey"]
print(key["AccessKeyId"], key["SecretAccessKey"])
"#;

/// A server that speaks S3 (moto) and checks signatures, with the bucket `results`; and a user's
/// key and secret.
pub fn s3() -> (Server, String, String) {
    let installed =
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools/moto/bin/moto_server");
    let program = if installed.exists() { installed } else { tool("moto_server") };
    let (port, folder) = (free_port(), folder());
    let mut command = Command::new(&program);
    command
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .env("INITIAL_NO_AUTH_ACTION_COUNT", "4");
    let server = start(&mut command, port, folder, "moto_server");
    let url = format!("http://127.0.0.1:{port}");
    let made = Command::new(program.with_file_name("python"))
        .args(["-c", S3_USER, &url])
        .output()
        .expect("python starts");
    let told = String::from_utf8_lossy(&made.stdout).into_owned();
    let (key, secret) =
        told.trim().split_once(' ').unwrap_or_else(|| panic!("no user can be made: {made:?}"));
    (server, key.to_owned(), secret.to_owned())
}

/// An authority of one's own (`ca.pem`), and a certificate for 127.0.0.1 (`server.pem`,
/// `server.key`).
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub fn new() -> Certificates {
        let certificates = Certificates { folder: folder() };
        let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ours \
             -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:TRUE &&\n\
             openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout server.key -out server.csr &&\n\
             printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > extensions &&\n\
             openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out server.pem";
        let made = Command::new("sh")
            .args(["-ec", script])
            .current_dir(certificates.folder.path())
            .output();
        let made = made.expect("sh starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        certificates
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
