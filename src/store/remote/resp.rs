//! The protocol of Redis (RESP 2): writes commands and reads replies of bounded length. A reply
//! that is longer than anything of ours is skipped.

use std::io::{self, BufRead, Read};

/// No line of a reply is longer.
const LONGEST_LINE: u64 = 64 << 10;

/// No list of a reply has more members, nor lists in lists in lists.
const MOST_MEMBERS: usize = 1 << 20;
const DEEPEST: usize = 4;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Nothing,
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
    /// More bytes than are wanted.
    TooLong(u64),
    List(Vec<Reply>),
    Error(String),
}

/// Adds a command to what is to be sent.
pub fn command(parts: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
    for part in parts {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads one reply; of bytes at most `largest`.
pub fn reply(from: &mut impl BufRead, largest: usize) -> io::Result<Reply> {
    nested(from, largest, 0)
}

fn nested(from: &mut impl BufRead, largest: usize, depth: usize) -> io::Result<Reply> {
    let line = line(from)?;
    let (sort, rest) = line.split_at_checked(1).ok_or_else(garbage)?;
    match sort {
        "+" => Ok(Reply::Text(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => Ok(Reply::Number(rest.parse().map_err(|_| garbage())?)),
        "$" => match length(rest)? {
            None => Ok(Reply::Nothing),
            Some(length) => bytes(from, length, largest),
        },
        "*" => match length(rest)? {
            None => Ok(Reply::Nothing),
            Some(length) if length > MOST_MEMBERS as u64 || depth >= DEEPEST => Err(garbage()),
            Some(length) => (0..length)
                .map(|_| nested(from, largest, depth + 1))
                .collect::<io::Result<_>>()
                .map(Reply::List),
        },
        _ => Err(garbage()),
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
    }
    let text = line.strip_suffix(b"\r\n").ok_or_else(garbage)?;
    String::from_utf8(text.to_vec()).map_err(|_| garbage())
}

/// A length; `None` for the one that stands for nothing.
fn length(text: &str) -> io::Result<Option<u64>> {
    match text {
        "-1" => Ok(None),
        text => text.parse().map(Some).map_err(|_| garbage()),
    }
}

fn bytes(from: &mut impl BufRead, length: u64, largest: usize) -> io::Result<Reply> {
    let reply = if length > largest as u64 {
        io::copy(&mut from.take(length), &mut io::sink())?;
        Reply::TooLong(length)
    } else {
        let mut bytes = Vec::new();
        from.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection was closed in the middle of a value",
            ));
        }
        Reply::Bytes(bytes)
    };
    let mut end = [0; 2];
    from.read_exact(&mut end)?;
    if end == *b"\r\n" { Ok(reply) } else { Err(garbage()) }
}

fn garbage() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is not in Redis's protocol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> io::Result<Reply> {
        reply(&mut &bytes[..], 10)
    }

    #[test]
    fn every_sort_of_reply() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Text("OK".into()));
        assert_eq!(read(b"-ERR x\r\n").unwrap(), Reply::Error("ERR x".into()));
        assert_eq!(read(b":-7\r\n").unwrap(), Reply::Number(-7));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Nothing);
        assert_eq!(read(b"$3\r\na\nb\r\n").unwrap(), Reply::Bytes(b"a\nb".to_vec()));
        assert_eq!(read(b"$11\r\nabcdefghijk\r\n").unwrap(), Reply::TooLong(11));
        let list = Reply::List(vec![Reply::Number(1), Reply::List(Vec::new())]);
        assert_eq!(read(b"*2\r\n:1\r\n*0\r\n").unwrap(), list);
    }

    #[test]
    fn replies_outside_the_protocol_are_errors() {
        for bytes in [
            &b""[..],
            b"\r\n",
            b"hello\r\n",
            b"+OK",
            b"$5\r\nab",
            b"$2\r\nabXX",
            b":x\r\n",
            b"$99999999999999999999\r\n",
            b"*9999999999\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_reply_or_an_error(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }

        #[test]
        fn malformed_replies_are_errors(text in "[*$:+-][0-9]{1,4}\r\n([*$:+-][0-9a]{1,3}\r\n){0,9}") {
            let _ = read(text.as_bytes());
        }
    }
}
