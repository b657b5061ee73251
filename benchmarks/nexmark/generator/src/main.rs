//! Writes Nexmark's auctions and bids as logs of JSON lines: `nexmark-logs FOLDER EVENTS PARTS BASE_MILLIS`.
//!
//! `FOLDER/auctions/0.jsonl` and so on, `FOLDER/bids/…` likewise; the parts follow one another in event time.
//! Persons are counted among EVENTS and not written. Everything is the `nexmark` crate's own, with its own settings;
//! a bid gets an id, its number among all events, and `as_of`, a second after its time, since it may name one of the
//! next ten auctions and who joins it looks back in time alone.

use std::error::Error;
use std::fs::{create_dir_all, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use nexmark::config::NexmarkConfig;
use nexmark::event::{Bid, Event};
use nexmark::EventGenerator;
use serde::Serialize;

const LEAD_MILLIS: u64 = 1000;

#[derive(Serialize)]
struct Numbered<'a> {
    id: usize,
    as_of: u64,
    #[serde(flatten)]
    bid: &'a Bid,
}

struct Log {
    file: BufWriter<File>,
}

impl Log {
    fn open(folder: &Path, stream: &str, part: usize) -> Result<Self, Box<dyn Error>> {
        let folder = folder.join(stream);
        create_dir_all(&folder)?;
        let file = File::create(folder.join(format!("{part}.jsonl")))?;
        Ok(Log { file: BufWriter::new(file) })
    }

    fn append<T: Serialize>(&mut self, record: &T) -> Result<(), Box<dyn Error>> {
        serde_json::to_writer(&mut self.file, record)?;
        self.file.write_all(b"\n")?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [folder, events, parts, base] = given.as_slice() else {
        return Err("usage: nexmark-logs FOLDER EVENTS PARTS BASE_MILLIS".into());
    };
    let (folder, events, parts) = (PathBuf::from(folder), events.parse::<usize>()?, parts.parse::<usize>()?);
    let config = NexmarkConfig { base_time: base.parse()?, ..NexmarkConfig::default() };
    let mut generator = EventGenerator::new(config);
    for part in 0..parts {
        let (mut auctions, mut bids) = (Log::open(&folder, "auctions", part)?, Log::open(&folder, "bids", part)?);
        for id in events * part / parts..events * (part + 1) / parts {
            match generator.next().ok_or("the generator has ended")? {
                Event::Auction(auction) => auctions.append(&auction)?,
                Event::Bid(bid) => bids.append(&Numbered { id, as_of: bid.date_time + LEAD_MILLIS, bid: &bid })?,
                Event::Person(_) => {}
            }
        }
        auctions.file.flush()?;
        bids.file.flush()?;
    }
    Ok(())
}
