//! SQLite by rusqlite, bundled, with a write-ahead log; a checksum would come on top, as SQLite has none of its own.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::time::Duration;
use store_candidates::{Candidate, Name};

struct Sqlite(Connection);

const SCHEMA: &str = "
    pragma journal_mode = wal;
    create table if not exists shapes (name blob primary key, value blob) without rowid;
    create table if not exists outcomes (name blob primary key, value blob, used integer) without rowid;
    create table if not exists log (line blob);
    pragma user_version = 1;";

impl Sqlite {
    fn try_open(folder: &str) -> rusqlite::Result<Self> {
        let connection = Connection::open(format!("{folder}/database"))?;
        connection.busy_timeout(Duration::from_secs(20))?;
        connection.execute_batch("pragma synchronous = normal")?;
        let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
        if version == 0 {
            connection.execute_batch(SCHEMA)?;
        }
        Ok(Sqlite(connection))
    }

    fn get(&self, query: &str, name: &Name) -> Option<Vec<u8>> {
        self.0.query_row(query, [&name[..]], |row| row.get(0)).ok()
    }

    fn try_put(&self, test: &Name, shape: &[u8], key: &Name, outcome: &[u8]) -> rusqlite::Result<()> {
        let transaction = Transaction::new_unchecked(&self.0, TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("insert or replace into shapes values (?, ?)")?
            .execute(params![&test[..], shape])?;
        transaction
            .prepare_cached("insert or replace into outcomes values (?, ?, 1)")?
            .execute(params![&key[..], outcome])?;
        transaction.commit()
    }
}

impl Candidate for Sqlite {
    fn open(folder: &str) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        Self::try_open(folder).map_err(|error| error.to_string())
    }

    fn shape(&self, test: &Name) -> Option<Vec<u8>> {
        self.get("select value from shapes where name = ?", test)
    }

    fn outcome(&self, key: &Name) -> Option<Vec<u8>> {
        self.get("select value from outcomes where name = ?", key)
    }

    fn put(&self, test: &Name, shape: &[u8], key: &Name, outcome: &[u8]) -> Result<(), String> {
        self.try_put(test, shape, key, outcome).map_err(|error| error.to_string())
    }

    fn log(&self, line: &[u8]) -> Result<(), String> {
        self.0.execute("insert into log values (?)", [line]).map(|_| ()).map_err(|error| error.to_string())
    }
}

fn main() -> Result<(), String> {
    store_candidates::main::<Sqlite>()
}
