//! One connection to one Redis server: TCP, TLS or a local socket. Commands are sent together, and
//! the replies come back in the same order.

use super::resp::{self, Reply};
use super::url::Url;
use super::{Timeouts, left, tls};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    Tcp { host: String, port: u16, is_secure: bool },
    Socket(PathBuf),
}

/// How to log in, and how long things may take.
#[derive(Clone)]
pub struct ConnectOptions {
    pub user: String,
    pub password: String,
    pub database: u32,
    pub ca_file: Option<PathBuf>,
    pub largest: usize,
    pub timeouts: Timeouts,
}

enum Stream {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
    Socket(UnixStream),
}

/// An open connection.
pub struct Connection {
    stream: BufReader<Stream>,
    connect_options: ConnectOptions,
    is_logged_in: bool,
}

/// The words of a command.
pub type Command = Vec<Vec<u8>>;

impl Server {
    pub fn at(url: &Url) -> Server {
        Server::Tcp { host: url.host.clone(), port: url.port, is_secure: url.is_secure() }
    }
}

impl Connection {
    pub fn open(server: &Server, connect_options: &ConnectOptions) -> Result<Connection, String> {
        let Timeouts { connect, operation } = connect_options.timeouts;
        let limited = |stream: &TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(operation))?;
            stream.set_write_timeout(Some(operation))
        };
        let stream = match server {
            Server::Tcp { host, port, is_secure } => {
                let stream = reach(host, *port, Instant::now() + connect)?;
                limited(&stream).map_err(|error| error.to_string())?;
                match is_secure {
                    true => Stream::Secure(Box::new(tls::wrap(
                        stream,
                        host,
                        connect_options.ca_file.as_deref(),
                    )?)),
                    false => Stream::Plain(stream),
                }
            }
            Server::Socket(path) => {
                let stream = UnixStream::connect(path).map_err(|error| describe_error(&error))?;
                let limits = stream
                    .set_read_timeout(Some(operation))
                    .and_then(|()| stream.set_write_timeout(Some(operation)));
                limits.map_err(|error| error.to_string())?;
                Stream::Socket(stream)
            }
        };
        Ok(Connection {
            stream: BufReader::with_capacity(64 << 10, stream),
            connect_options: connect_options.clone(),
            is_logged_in: false,
        })
    }

    /// Sends commands and reads a reply for each. The first time, logging in goes ahead of them in
    /// the same turn.
    pub fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, String> {
        let login = if self.is_logged_in { Vec::new() } else { self.login() };
        let mut out = Vec::new();
        for command in login.iter().chain(commands) {
            resp::command(&command.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut out);
        }
        let stream = self.stream.get_mut();
        stream
            .write_all(&out)
            .and_then(|()| stream.flush())
            .map_err(|error| describe_error(&error))?;
        for _ in &login {
            if let Reply::Error(error) = self.reply()? {
                return Err(format!("logging in failed: {error}"));
            }
        }
        self.is_logged_in = true;
        commands.iter().map(|_| self.reply()).collect()
    }

    fn reply(&mut self) -> Result<Reply, String> {
        let reply = resp::reply(&mut self.stream, self.connect_options.largest)
            .map_err(|error| describe_error(&error))?;
        match reply {
            Reply::Error(error) if error.starts_with("NOAUTH") => {
                Err(format!("a password is needed: {error}"))
            }
            reply => Ok(reply),
        }
    }

    fn login(&self) -> Vec<Command> {
        let ConnectOptions { user, password, database, .. } = &self.connect_options;
        let words =
            |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Command>();
        let mut commands = Vec::new();
        match (user.as_str(), password.as_str()) {
            ("", "") => {}
            ("", password) => commands.push(words(&["AUTH", password])),
            (user, password) => commands.push(words(&["AUTH", user, password])),
        }
        if *database != 0 {
            commands.push(words(&["SELECT", &database.to_string()]));
        }
        commands
    }
}

/// Connects to one of the addresses of a host.
fn reach(host: &str, port: u16, until: Instant) -> Result<TcpStream, String> {
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the host is not known: {error}"))?;
    let mut problem = "the host has no address".to_owned();
    for address in addresses {
        let Some(left) = left(until) else { break };
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = format!("cannot connect: {}", describe_error(&error)),
        }
    }
    Err(problem)
}

/// An error in words; a timeout has two names.
fn describe_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Secure(stream) => stream.read(buffer),
            Stream::Socket(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Secure(stream) => stream.write(bytes),
            Stream::Socket(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Secure(stream) => stream.flush(),
            Stream::Socket(stream) => stream.flush(),
        }
    }
}
