//! Checks whether the end of SQLite's write-ahead log is incomplete or damaged, because SQLite
//! would drop it silently. SQLite keeps a checksum with every page in the log and stops at the
//! first that doesn't match.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAX_PAGE_BYTES: usize = 65_536;

/// The number of pages at the end of the log that SQLite will ignore.
pub(crate) fn unusable_pages(log: &Path) -> io::Result<u64> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        result => result?,
    };
    let length = file.metadata()?.len();
    let mut log = BufReader::new(file);
    let mut header = [0; HEADER_BYTES];
    // An empty log is what a checkpoint leaves behind.
    if length == 0 || log.read_exact(&mut header).is_err() {
        return Ok(u64::from(length > 0));
    }
    let page_size = word(&header, 8) as usize;
    let frames = |bytes: u64| bytes.div_ceil((FRAME_HEADER_BYTES + page_size.max(512)) as u64);
    let mut sums = WalChecksum::new(&header);
    sums.add(&header[..24]);
    if !(512..=MAX_PAGE_BYTES).contains(&page_size) || !sums.matches(&header, 24) {
        return Ok(frames(length - HEADER_BYTES as u64).max(1));
    }

    let mut frame = vec![0; FRAME_HEADER_BYTES + page_size];
    let mut pending = 0;
    loop {
        let bytes_read = read_full(&mut log, &mut frame)?;
        // A frame older than the header is left over from before the log restarted.
        let is_current = frame[8..16] == header[16..24];
        if bytes_read == 0 || (bytes_read >= 16 && !is_current) {
            return Ok(pending);
        }
        sums.add(&frame[..8]);
        sums.add(&frame[FRAME_HEADER_BYTES..]);
        if bytes_read < frame.len() || !sums.matches(&frame, 16) {
            return Ok(pending + 1);
        }
        // The last page of a transaction is marked. Pages after the last mark were never committed.
        pending = if word(&frame, 4) == 0 { pending + 1 } else { 0 };
    }
}

fn read_full(log: &mut impl Read, frame: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < frame.len() {
        match log.read(&mut frame[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

struct WalChecksum {
    is_little_endian: bool,
    sums: (u32, u32),
}

impl WalChecksum {
    fn new(header: &[u8]) -> Self {
        Self {
            is_little_endian: word(header, 0) & 1 == 0,
            sums: (0, 0),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let word = |at: &[u8]| {
            let word = word(at, 0);
            match self.is_little_endian {
                true => word.swap_bytes(),
                false => word,
            }
        };
        for pair in bytes.chunks_exact(8) {
            let (first, second) = pair.split_at(4);
            let (one, two) = self.sums;
            let one = one.wrapping_add(word(first)).wrapping_add(two);
            let two = two.wrapping_add(word(second)).wrapping_add(one);
            self.sums = (one, two);
        }
    }

    fn matches(&self, bytes: &[u8], at: usize) -> bool {
        self.sums == (word(bytes, at), word(bytes, at + 4))
    }
}
