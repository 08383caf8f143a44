//! The remote store: results shared between machines, on servers that teams already run. It holds
//! three kinds of values: the dependency sets of a test, as one list; outcomes; and, if asked for,
//! compiled objects. Each is written at once, in an envelope with a checksum, and signed if there
//! is a key for that.
//!
//! In: names and values. Out: the same, checked, or a reason. An operation never takes longer than
//! its timeout, and after a failure the server is not asked for a while (`breaker`). Writes wait in
//! a folder (`spool`) for a background process (`transfer`).

pub mod archive;
pub mod breaker;
pub mod keys;
pub mod location;
mod name;
pub mod objects;
pub mod outcome_safety;
pub mod resp;
pub mod spool;
pub mod transfer;
pub mod value;

mod cluster;
mod folder;
mod http;
mod redis;
mod s3;
mod sign_s3;
mod tls;
mod url;

use self::breaker::Breaker;
use self::location::{Endpoint, Location, Secret};
pub use self::name::{Name, ValueKind};
use self::spool::Spool;
use self::value::Keys;
use crate::model::Hash;
use crate::model::keys::KeyOf;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a server may take where nobody waits for it.
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a server could not be asked. No text has a secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{shown}: {reason}")]
pub struct RemoteError {
    /// Which server.
    pub shown: String,
    pub reason: String,
}

/// What came of asking for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    Missing,
    Value(Vec<u8>),
    /// There is something, but it is none of our values.
    Bad(String),
}

/// Something that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: Name,
    pub bytes: u64,
}

/// A server, or what stands for one. Errors are texts without secrets, and mean that it is of no
/// use just now.
pub(super) trait Backend: Send {
    /// The values of these names, in their order. With `first_hit_only`, those after the first that
    /// is there may be left out (as missing) where asking for each costs a turn.
    fn get(&mut self, names: &[Name], first_hit_only: bool) -> Result<Vec<Fetched>, String>;

    /// Writes values: all, or only those that are not there yet.
    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String>;

    fn remove(&mut self, names: &[Name]) -> Result<(), String>;

    /// Notes that values were used, where the server goes by what it is told.
    fn touch(&mut self, names: &[Name]) -> Result<(), String>;

    /// Shows everything that there is.
    fn list(&mut self, visit: &mut dyn FnMut(Listed)) -> Result<(), String>;

    /// Removes what has not been used for longer than it is to be kept; how many values.
    fn clean(&mut self) -> Result<u64, String> {
        Err("this server removes what is old by itself".to_owned())
    }

    /// Called when all was written.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// How a remote store is to be used, beyond what its location says.
#[derive(Clone, Default)]
pub struct Usage {
    /// Nothing is to be written there, and why.
    pub read_only: Option<&'static str>,
    /// Public keys; if there are any, only what they have signed is believed.
    pub trusted_keys: Vec<String>,
    /// Failures are shared as well.
    pub failures: bool,
    /// Outcomes that name the folders of a checkout are shared as well.
    pub checkout_specific: bool,
    /// What is there is to be replaced.
    pub recache: bool,
}

/// A remote store.
pub struct Remote {
    pub location: Location,
    pub usage: Usage,
    pub spool: Spool,
    pub reading: Breaker,
    pub writing: Breaker,
    keys: Keys,
    /// The objects of this machine, for those who send them.
    objects: Option<objects::Source>,
    connection: Mutex<Option<Box<dyn Backend>>>,
    long_timeout: Option<Duration>,
    /// How long has been waited for it already.
    spent: Mutex<Duration>,
}

impl Remote {
    /// A remote store, with a folder of this machine's store for what is to be remembered about it.
    /// Nothing is touched yet.
    pub fn new(location: Location, usage: Usage, store: &Path, store_is_read_only: bool) -> Remote {
        let folder = store.join("remote").join(identity(&location).to_string());
        let breakers =
            if store_is_read_only { temporary_folder(&location) } else { folder.clone() };
        Remote::with_folders(location, usage, &folder, &breakers)
    }

    fn with_folders(
        mut location: Location,
        usage: Usage,
        folder: &Path,
        breakers: &Path,
    ) -> Remote {
        location.attributes.read_only = Some(usage.read_only.is_some());
        let [reading, writing] = breakers_in(breakers, &location);
        let keys = Keys::new(&location.attributes, &usage.trusted_keys);
        Remote {
            reading,
            writing,
            spool: Spool::new(folder.join("spool")),
            keys,
            objects: None,
            connection: Mutex::new(None),
            long_timeout: None,
            spent: Mutex::default(),
            location,
            usage,
        }
    }

    /// The same for work that nobody waits for.
    pub fn for_background_work(self) -> Remote {
        let long_timeout = LONG_TIMEOUT.max(self.location.attributes.operation_timeout);
        Remote { long_timeout: Some(long_timeout), ..self }
    }

    /// Whether anything is to be written there.
    pub fn is_writable(&self) -> bool {
        self.usage.read_only.is_none()
    }

    /// Asks for values; only as long as this may take.
    pub(super) fn get(
        &self,
        names: &[Name],
        first_hit_only: bool,
    ) -> Result<Vec<Fetched>, RemoteError> {
        let names = names.to_vec();
        self.with(move |server| server.get(&names, first_hit_only))
    }

    /// Lets the server do something, within the time that it has.
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Backend) -> Result<T, String> + Send + 'static,
    ) -> Result<T, RemoteError> {
        let connected = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (location, long_timeout) = (self.location.clone(), self.long_timeout);
        let act = move || {
            let mut server = match connected {
                Some(server) => server,
                None => connect(&location, long_timeout)?,
            };
            let done = work(server.as_mut())?;
            Ok((server, done))
        };
        let done = match self.long_timeout {
            Some(_) => act(),
            None => self.within_time_budget(act),
        };
        let (server, done) = done.map_err(|reason| self.error(reason))?;
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(done)
    }

    /// Does something in what is left of the time that the server has, over all that it is asked.
    fn within_time_budget<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let start = Instant::now();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let time = self.location.attributes.operation_timeout;
        let done = with_deadline(time.saturating_sub(*spent), work);
        *spent += start.elapsed();
        done.map_err(|problem| {
            problem.unwrap_or_else(|| {
                format!("no answer within {} ms (operation-timeout)", time.as_millis())
            })
        })
    }

    fn error(&self, reason: String) -> RemoteError {
        RemoteError {
            shown: self.location.url().to_owned(),
            reason: self.location.without_secrets(reason),
        }
    }
}

/// Does something in a thread of its own, and waits no longer than this. Names that resolve slowly,
/// handshakes that hang, answers that come a byte at a time: all of it ends here, with no problem
/// to name. The thread ends with the process.
fn with_deadline<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Option<String>> {
    let (sender, receiver) = mpsc::channel();
    let started = std::thread::Builder::new().name("remote".to_owned()).spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = sender.send(work());
    });
    started.map_err(|error| Some(format!("no thread can be started: {error}")))?;
    match receiver.recv_timeout(time) {
        Ok(done) => done.map_err(Some),
        Err(RecvTimeoutError::Timeout) => Err(None),
        Err(RecvTimeoutError::Disconnected) => {
            Err(Some("Tasting failed while asking; please report it".to_owned()))
        }
    }
}

fn connect(
    location: &Location,
    long_timeout: Option<Duration>,
) -> Result<Box<dyn Backend>, String> {
    let timeouts = Timeouts {
        connect: long_timeout
            .map_or(location.attributes.connect_timeout, |long_timeout| long_timeout / 3),
        operation: long_timeout.unwrap_or(location.attributes.operation_timeout),
    };
    let mut location = location.clone();
    if location.attributes.archive {
        location.attributes.largest = archive::LARGEST;
    }
    let server: Box<dyn Backend> = match location.endpoint.clone() {
        Endpoint::Folder(path) => Box::new(folder::Folder::new(path, &location.attributes)),
        Endpoint::Redis(url) => Box::new(cluster::Cluster::new(
            redis::Server::at(&url),
            &url,
            &location.attributes,
            timeouts,
        )?),
        Endpoint::RedisSocket { path, url } => Box::new(cluster::Cluster::new(
            redis::Server::Socket(path),
            &url,
            &location.attributes,
            timeouts,
        )?),
        Endpoint::Http(url) => Box::new(http::Http::new(&url, &location.attributes, timeouts)?),
        Endpoint::S3 { bucket, prefix } => {
            Box::new(s3::S3::new(&bucket, &prefix, &location.attributes, timeouts)?)
        }
        Endpoint::Archive(path) => {
            Box::new(archive::Archive::open(path, &location.attributes.namespace)?)
        }
    };
    Ok(match location.attributes.archive {
        true => Box::new(archive::Archive::on(server, &location.attributes.namespace)?),
        false => server,
    })
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    connect: Duration,
    operation: Duration,
}

/// What keeps everybody from reading, and from writing.
fn breakers_in(folder: &Path, location: &Location) -> [Breaker; 2] {
    ["reading-failed", "writing-failed"]
        .map(|name| Breaker::new(folder.join(name), location.attributes.retry))
}

/// What tells two remote stores apart.
fn identity(location: &Location) -> Hash {
    let attributes = &location.attributes;
    let mut hasher = KeyOf::RemoteStore.hasher();
    hasher.bytes(location.url().as_bytes()).bytes(attributes.namespace.as_bytes());
    // Who signs with another key does not do other people's jobs.
    let sign_key = attributes.sign_key.as_deref().map(|path| path.as_os_str().as_encoded_bytes());
    hasher.number(sign_key.is_some().into()).bytes(sign_key.unwrap_or_default());
    hasher.bytes(attributes.endpoint.as_deref().unwrap_or_default().as_bytes());
    hasher.code(attributes.layout).finish()
}

/// Where breakers are kept if nothing is to be written to the store.
fn temporary_folder(location: &Location) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let user = std::env::var("USER").unwrap_or_default();
    let name = KeyOf::Breakers.hasher().hash(identity(location)).bytes(user.as_bytes()).finish();
    folder.join(format!("tasting-{name}"))
}

/// How much time is left.
fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

impl Location {
    /// The URL without attributes and secrets.
    pub fn url(&self) -> &str {
        self.shown.split(' ').next().unwrap_or_default()
    }

    /// The text without any of the secrets, wherever it comes from.
    fn without_secrets(&self, text: String) -> String {
        let attributes = &self.attributes;
        let secrets = [&attributes.password, &attributes.bearer_token].into_iter().flatten();
        let mut secrets: Vec<String> =
            secrets.filter_map(|secret: &Secret| secret.text().ok()).collect();
        secrets.extend(attributes.headers.iter().map(|(_, value)| value.clone()));
        if let Endpoint::Redis(url) | Endpoint::Http(url) | Endpoint::RedisSocket { url, .. } =
            &self.endpoint
        {
            secrets.extend([url.password.clone(), url::encoded(&url.password, "")]);
        }
        secrets.extend(
            ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
                .iter()
                .filter_map(|name| std::env::var(name).ok()),
        );
        secrets
            .iter()
            .filter(|secret| secret.len() > 2)
            .fold(text, |text, secret| text.replace(secret.as_str(), "***"))
    }
}
