//! A remote store in Redis: one server, or a cluster. All requests of one operation are sent
//! together. A server of a cluster that does not hold a key names the one that does, so no setting
//! has to say that it is a cluster.

use super::location::Attributes;
use super::redis::{Command, ConnectOptions, Connection, Server};
use super::resp::Reply;
use super::url::Url;
use super::{Backend, Fetched, Listed, Name, Timeouts};
use crate::model::keys::SCHEMA;
use std::collections::BTreeMap;

/// How often a key may be said to be elsewhere.
const MOST_TURNS: usize = 6;

pub struct Cluster {
    home: Server,
    nodes: BTreeMap<String, Connection>,
    connect_options: ConnectOptions,
    prefix: String,
    attributes: Attributes,
    touches: bool,
}

/// A command that has no reply yet.
struct Open {
    index: usize,
    /// The server that is said to have the key; empty for the first one.
    node: String,
    /// The server has the key only for whoever asks expressly.
    is_moving: bool,
}

impl Cluster {
    pub fn new(
        home: Server,
        url: &Url,
        attributes: &Attributes,
        timeouts: Timeouts,
    ) -> Result<Cluster, String> {
        let password = attributes
            .password
            .as_ref()
            .map_or(Ok(url.password.clone()), |secret| secret.text())?;
        let user = attributes.user.clone().unwrap_or_else(|| url.user.clone());
        let database = database(&home, url)?;
        let Attributes { ca_file, largest, namespace, .. } = attributes.clone();
        let connect_options =
            ConnectOptions { user, password, database, ca_file, largest, timeouts };
        let prefix = format!("tasting:{SCHEMA}:{namespace}:");
        let touches = attributes.read_only != Some(true);
        Ok(Cluster {
            home,
            nodes: BTreeMap::new(),
            connect_options,
            prefix,
            attributes: attributes.clone(),
            touches,
        })
    }

    fn key(&self, name: Name) -> Vec<u8> {
        format!("{}{}", self.prefix, name.file()).into_bytes()
    }

    fn name(&self, key: &[u8]) -> Option<Name> {
        Name::of_file(std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?)
    }

    fn expire_command(&self, name: Name) -> Option<Command> {
        Some(vec![b"EXPIRE".to_vec(), self.key(name), self.lifetime(name)?])
    }

    /// How many seconds a value is kept that nobody uses.
    fn lifetime(&self, name: Name) -> Option<Vec<u8>> {
        Some(self.attributes.lifetime(name.kind)?.as_secs().max(1).to_string().into_bytes())
    }

    /// A reply for each command, from whichever server has its key.
    fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, String> {
        let mut replies: Vec<Option<Reply>> = vec![None; commands.len()];
        let start = |index| Open { index, node: String::new(), is_moving: false };
        let mut open: Vec<Open> = (0..commands.len()).map(start).collect();
        for _ in 0..MOST_TURNS {
            if open.is_empty() {
                break;
            }
            let mut by_node: BTreeMap<String, Vec<Open>> = BTreeMap::new();
            open.drain(..)
                .for_each(|command| by_node.entry(command.node.clone()).or_default().push(command));
            for (node, asked) in by_node {
                for (command, reply) in asked.iter().zip(self.run_at(&node, &asked, commands)?) {
                    match redirection(&reply, &node) {
                        Some((node, is_moving)) => {
                            open.push(Open { index: command.index, node, is_moving })
                        }
                        None => replies[command.index] = Some(reply),
                    }
                }
            }
        }
        replies
            .into_iter()
            .map(|reply| {
                reply
                    .ok_or_else(|| "the cluster's servers send us from one to the other".to_owned())
            })
            .collect()
    }

    fn run_at(
        &mut self,
        node: &str,
        asked: &[Open],
        commands: &[Command],
    ) -> Result<Vec<Reply>, String> {
        let mut sent = Vec::with_capacity(asked.len());
        for open in asked {
            if open.is_moving {
                sent.push(vec![b"ASKING".to_vec()]);
            }
            sent.push(commands[open.index].clone());
        }
        let mut replies = self.node(node)?.run(&sent)?.into_iter();
        let own = |open: &Open| {
            if open.is_moving {
                replies.next();
            }
            replies.next().ok_or_else(|| "a reply is missing".to_owned())
        };
        asked.iter().map(own).collect()
    }

    fn node(&mut self, node: &str) -> Result<&mut Connection, String> {
        if !self.nodes.contains_key(node) {
            let server = self.server(node)?;
            self.nodes.insert(node.to_owned(), Connection::open(&server, &self.connect_options)?);
        }
        self.nodes.get_mut(node).ok_or_else(|| "there is no connection".to_owned())
    }

    /// Where a node is that another one named; without a host it is on the same one.
    fn server(&self, node: &str) -> Result<Server, String> {
        let Server::Tcp { host: home, is_secure, .. } = &self.home else {
            return if node.is_empty() {
                Ok(self.home.clone())
            } else {
                Err("a cluster has no socket".to_owned())
            };
        };
        if node.is_empty() {
            return Ok(self.home.clone());
        }
        let (host, port) = node.rsplit_once(':').ok_or("a server of the cluster has no port")?;
        let host = host.trim_matches(['[', ']']);
        let port = port.parse().map_err(|_| "a server of the cluster has no port".to_owned())?;
        let host = if host.is_empty() { home.clone() } else { host.to_owned() };
        Ok(Server::Tcp { host, port, is_secure: *is_secure })
    }

    /// All servers that hold values of their own.
    fn masters(&mut self) -> Result<Vec<String>, String> {
        let asked = vec![vec![b"CLUSTER".to_vec(), b"NODES".to_vec()]];
        match self.node("")?.run(&asked)?.pop() {
            Some(Reply::Bytes(text)) => Ok(masters_in(&String::from_utf8_lossy(&text))),
            _ => Ok(vec![String::new()]),
        }
    }

    fn list_at(&mut self, node: &str, visit: &mut dyn FnMut(Listed)) -> Result<(), String> {
        let pattern = format!("{}*", self.prefix).into_bytes();
        let mut cursor = b"0".to_vec();
        loop {
            let words = [b"SCAN", &cursor[..], b"MATCH", &pattern, b"COUNT", b"1000"];
            let reply =
                self.node(node)?.run(&[words.iter().map(|word| word.to_vec()).collect()])?.pop();
            let (next, keys) = scanned(reply)?;
            let names: Vec<Name> = keys.iter().filter_map(|key| self.name(key)).collect();
            let lengths: Vec<Command> =
                names.iter().map(|name| vec![b"STRLEN".to_vec(), self.key(*name)]).collect();
            for (name, reply) in names.into_iter().zip(self.node(node)?.run(&lengths)?) {
                if let Reply::Number(bytes @ 1..) = reply {
                    visit(Listed { name, bytes: bytes as u64 });
                }
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Runs commands of which nobody needs more than that they were not refused.
    fn order(&mut self, commands: &[Command]) -> Result<(), String> {
        for reply in self.run(commands)? {
            if let Reply::Error(error) = reply {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The number of the database in `redis://host/2` or `redis+unix:/path?db=2`.
fn database(home: &Server, url: &Url) -> Result<u32, String> {
    let text = match home {
        Server::Tcp { .. } => url.path.trim_matches('/'),
        Server::Socket(_) => url.query.strip_prefix("db=").unwrap_or(&url.query),
    };
    if text.is_empty() {
        Ok(0)
    } else {
        text.parse().map_err(|_| "the number of the database is no number".to_owned())
    }
}

/// Where a key is instead: `MOVED slot host:port` or `ASK slot host:port`.
fn redirection(reply: &Reply, here: &str) -> Option<(String, bool)> {
    let Reply::Error(error) = reply else { return None };
    let mut words = error.split(' ');
    let is_moving = match words.next()? {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let node = words.nth(1)?.to_owned();
    (node != here || is_moving).then_some((node, is_moving))
}

/// The addresses of masters in what `CLUSTER NODES` says.
fn masters_in(text: &str) -> Vec<String> {
    let master = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (address, flags) = (words.next()?, words.next()?);
        let is_master = flags.split(',').any(|flag| flag == "master") && !flags.contains("fail");
        let address = address.split(['@', ',']).next()?;
        is_master.then(|| address.to_owned())
    };
    text.lines().filter_map(master).collect()
}

/// The next cursor, and the keys that were found.
fn scanned(reply: Option<Reply>) -> Result<(Vec<u8>, Vec<Vec<u8>>), String> {
    let unclear = || "the answer to SCAN is not understood".to_owned();
    let Some(Reply::List(parts)) = reply else { return Err(unclear()) };
    let [Reply::Bytes(cursor), Reply::List(keys)] = &parts[..] else { return Err(unclear()) };
    let key = |key: &Reply| if let Reply::Bytes(key) = key { Some(key.clone()) } else { None };
    Ok((cursor.clone(), keys.iter().filter_map(key).collect()))
}

impl Backend for Cluster {
    fn get(&mut self, names: &[Name], _: bool) -> Result<Vec<Fetched>, String> {
        let mut commands: Vec<Command> =
            names.iter().map(|name| vec![b"GET".to_vec(), self.key(*name)]).collect();
        if self.touches {
            commands.extend(names.iter().filter_map(|name| self.expire_command(*name)));
        }
        let replies = self.run(&commands)?;
        let fetched = |reply: Reply| match reply {
            Reply::Bytes(bytes) => Ok(Fetched::Value(bytes)),
            Reply::Nothing => Ok(Fetched::Missing),
            Reply::TooLong(bytes) => {
                Ok(Fetched::Bad(format!("it has {bytes} bytes, more than max-value allows")))
            }
            Reply::Error(error) if error.starts_with("WRONGTYPE") => Ok(Fetched::Bad(error)),
            Reply::Error(error) => Err(error),
            _ => Err("the answer to GET is not understood".to_owned()),
        };
        // Whether a use could be noted is nobody's problem.
        replies.into_iter().take(names.len()).map(fetched).collect()
    }

    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String> {
        let command = |(name, value): &(Name, Vec<u8>)| {
            let mut words = vec![b"SET".to_vec(), self.key(*name), value.clone()];
            words.extend(self.lifetime(*name).into_iter().flat_map(|time| [b"EX".to_vec(), time]));
            words.extend((!replace).then(|| b"NX".to_vec()));
            words
        };
        let commands: Vec<Command> = values.iter().map(command).collect();
        self.order(&commands)
    }

    fn remove(&mut self, names: &[Name]) -> Result<(), String> {
        let commands: Vec<Command> =
            names.iter().map(|name| vec![b"DEL".to_vec(), self.key(*name)]).collect();
        self.order(&commands)
    }

    fn touch(&mut self, names: &[Name]) -> Result<(), String> {
        let commands: Vec<Command> =
            names.iter().filter_map(|name| self.expire_command(*name)).collect();
        self.order(&commands)
    }

    fn list(&mut self, visit: &mut dyn FnMut(Listed)) -> Result<(), String> {
        self.masters()?.iter().try_for_each(|node| self.list_at(node, visit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_who_has_a_key() {
        let error = |text: &str| Reply::Error(text.to_owned());
        assert_eq!(
            redirection(&error("MOVED 3999 10.0.0.1:6381"), ""),
            Some(("10.0.0.1:6381".into(), false))
        );
        assert_eq!(redirection(&error("ASK 3999 :6381"), ""), Some((":6381".into(), true)));
        assert_eq!(redirection(&error("MOVED 1 a:1"), "a:1"), None, "it sends us to itself");
        assert_eq!(redirection(&error("MOVED"), ""), None);
        assert_eq!(redirection(&Reply::Nothing, ""), None);
    }

    #[test]
    fn masters_are_found_among_the_nodes() {
        let text = "07c3 127.0.0.1:3004@31004 slave 2926 0 1 4 connected\n\
                    2926 127.0.0.1:3001@31001,name myself,master - 0 1 2 connected 0-5460\n\
                    6ec2 [::1]:3002@31002 master - 0 1 2 connected 5461-10922\n\
                    824f 127.0.0.1:3003@31003 master,fail - 0 1 2 connected\nnonsense\n";
        assert_eq!(masters_in(text), ["127.0.0.1:3001", "[::1]:3002"]);
    }
}
