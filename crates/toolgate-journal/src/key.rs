//! The secret key of the chain: with it, only its owner can make valid hashes.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use tracing::warn;

use crate::store::{private_file, suffixed};

pub(crate) type ChainHash = [u8; 32];

const KEY_BYTES: usize = 32;

/// A key from `journal.db.key`, for keyed hashes (HMAC, RFC 2104).
#[derive(Clone)]
pub(crate) struct ChainKey {
    pub(crate) id: i64,
    hmac: hmac::Key,
}

impl ChainKey {
    /// Loads the key beside a journal; `None` if that file is missing. Fails if the key can't be
    /// read, because the chain would otherwise continue as if there had never been a key.
    pub(crate) fn load(database: &Path) -> io::Result<Option<Self>> {
        let file = suffixed(database, ".key");
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if fs::metadata(&file)?.permissions().mode() & 0o077 != 0 {
            warn!(file = %file.display(), "other users could read the journal's key; its permissions were fixed, but anybody who read it can forge entries");
            fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        }
        let text = text.trim_ascii();
        match text.len() >= KEY_BYTES {
            true => Ok(Some(Self::new(text))),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{}: a key has at least {KEY_BYTES} characters",
                    file.display()
                ),
            )),
        }
    }

    /// Creates the key file unless it exists.
    pub(crate) fn create(database: &Path) -> io::Result<()> {
        let file = suffixed(database, ".key");
        let mut file = match private_file().write(true).create_new(true).open(file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            result => result?,
        };
        let mut secret = [0; KEY_BYTES];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| io::Error::other("the system returned no random numbers"))?;
        file.write_all(format!("{}\n", hex(&secret)).as_bytes())
    }

    fn new(secret: &[u8]) -> Self {
        let mut key = Self {
            id: 0,
            hmac: hmac::Key::new(hmac::HMAC_SHA256, secret),
        };
        // Identifies the key in entries without revealing it.
        let id = key.hash(b"the id of this key");
        key.id = i64::from_be_bytes([id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7]]);
        key
    }

    fn hash(&self, message: &[u8]) -> ChainHash {
        to_hash(hmac::sign(&self.hmac, message).as_ref())
    }
}

pub(crate) fn hash(key: Option<&ChainKey>, message: &[u8]) -> ChainHash {
    match key {
        Some(key) => key.hash(message),
        None => to_hash(digest(&SHA256, message).as_ref()),
    }
}

// `ring` returns hashes as slices of unknown length.
pub(crate) fn to_hash(bytes: &[u8]) -> ChainHash {
    let mut hash = ChainHash::default();
    hash.copy_from_slice(bytes);
    hash
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyed_hash_is_an_hmac() {
        // RFC 4231, test cases 2 and 6.
        let short = ChainKey::new(b"Jefe").hash(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&short), expected);
        let long = ChainKey::new(&[0xaa; 131])
            .hash(b"Test Using Larger Than Block-Size Key - Hash Key First");
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hex(&long), expected);
    }

    #[test]
    fn a_key_is_created_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("journal.db");
        assert!(ChainKey::load(&database).unwrap().is_none());
        ChainKey::create(&database).unwrap();
        let key = ChainKey::load(&database).unwrap().unwrap();
        ChainKey::create(&database).unwrap();
        assert_eq!(ChainKey::load(&database).unwrap().unwrap().id, key.id);
        let file = folder.path().join("journal.db.key");
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        ChainKey::load(&database).unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::write(&file, "short").unwrap();
        assert!(ChainKey::load(&database).is_err());
    }
}
