//! LMDB by heed, without syncing: a killed process loses nothing, a power cut may.

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use std::time::{SystemTime, UNIX_EPOCH};
use store_candidates::{Candidate, Name};

struct Lmdb {
    environment: Env,
    tables: [Database<Bytes, Bytes>; 3],
}

const TABLES: [&str; 3] = ["shapes", "outcomes", "log"];

impl Lmdb {
    fn try_open(folder: &str) -> heed::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(5 << 30).max_dbs(4).max_readers(512);
        // Not sound if somebody changes the file from outside, which nobody can rule out.
        let environment = unsafe { options.flags(EnvFlags::NO_SYNC).open(folder) }?;
        let reader = environment.read_txn()?;
        let [one, two, three] = TABLES.map(|table| environment.open_database(&reader, Some(table)));
        if let (Some(one), Some(two), Some(three)) = (one?, two?, three?) {
            reader.commit()?;
            return Ok(Lmdb { environment, tables: [one, two, three] });
        }
        drop(reader);
        let mut writer = environment.write_txn()?;
        let [one, two, three] = TABLES.map(|table| environment.create_database(&mut writer, Some(table)));
        let tables = [one?, two?, three?];
        writer.commit()?;
        Ok(Lmdb { environment, tables })
    }

    fn get(&self, table: usize, name: &[u8]) -> Option<Vec<u8>> {
        let reader = self.environment.read_txn().ok()?;
        self.tables[table].get(&reader, name).ok()?.map(<[u8]>::to_vec)
    }

    fn set(&self, values: &[(usize, &[u8], &[u8])]) -> Result<(), String> {
        let write = || -> heed::Result<()> {
            let mut writer = self.environment.write_txn()?;
            for (table, name, value) in values {
                self.tables[*table].put(&mut writer, name, value)?;
            }
            writer.commit()
        };
        write().map_err(|error| error.to_string())
    }
}

impl Candidate for Lmdb {
    fn open(folder: &str) -> Result<Self, String> {
        Self::try_open(folder).map_err(|error| error.to_string())
    }

    fn shape(&self, test: &Name) -> Option<Vec<u8>> {
        self.get(0, test)
    }

    fn outcome(&self, key: &Name) -> Option<Vec<u8>> {
        self.get(1, key)
    }

    fn put(&self, test: &Name, shape: &[u8], key: &Name, outcome: &[u8]) -> Result<(), String> {
        self.set(&[(0, test, shape), (1, key, outcome)])
    }

    fn log(&self, line: &[u8]) -> Result<(), String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
        self.set(&[(2, &now.as_nanos().to_be_bytes(), line)])
    }
}

fn main() -> Result<(), String> {
    store_candidates::main::<Lmdb>()
}
