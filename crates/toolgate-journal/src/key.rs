//! The secret that makes a hash of the chain one that only its owner can make.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use tracing::warn;

use crate::store::suffixed;

/// What a hash is made of: SHA-256.
pub(crate) type Hash = [u8; 32];

const BYTES: usize = 32;

/// A key of `journal.db.key`, for keyed hashes (HMAC, RFC 2104).
#[derive(Clone)]
pub(crate) struct Key {
    /// Says which key it is without giving it away.
    pub(crate) id: i64,
    hmac: hmac::Key,
}

impl Key {
    /// The key beside a journal; none where there is no such file. One that can't be read is an error: without it the chain
    /// would go on as if there had never been one.
    pub(crate) fn load(database: &Path) -> io::Result<Option<Self>> {
        let file = suffixed(database, ".key");
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if fs::metadata(&file)?.permissions().mode() & 0o077 != 0 {
            warn!(file = %file.display(), "others could read the journal's key; nobody else may now, but who has read it can forge");
            fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        }
        let text = text.trim_ascii();
        match text.len() >= BYTES {
            true => Ok(Some(Self::new(text))),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: a key has at least {BYTES} characters", file.display()),
            )),
        }
    }

    /// Makes one, unless there is one.
    pub(crate) fn create(database: &Path) -> io::Result<()> {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(suffixed(database, ".key"));
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        };
        let mut secret = [0; BYTES];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| io::Error::other("the system has no random numbers to give"))?;
        file.write_all(format!("{}\n", hex(&secret)).as_bytes())
    }

    fn new(secret: &[u8]) -> Self {
        let mut key = Self {
            id: 0,
            hmac: hmac::Key::new(hmac::HMAC_SHA256, secret),
        };
        let id = key.hash(b"the id of this key");
        key.id = i64::from_be_bytes([id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7]]);
        key
    }

    fn hash(&self, message: &[u8]) -> Hash {
        to_hash(hmac::sign(&self.hmac, message).as_ref())
    }
}

/// A hash of what stands in an entry of the chain, keyed where there is a key.
pub(crate) fn hash(key: Option<&Key>, message: &[u8]) -> Hash {
    match key {
        Some(key) => key.hash(message),
        None => to_hash(digest(&SHA256, message).as_ref()),
    }
}

/// `ring` gives back a hash without its length in the type.
pub(crate) fn to_hash(bytes: &[u8]) -> Hash {
    let mut hash = Hash::default();
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
        let short = Key::new(b"Jefe").hash(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&short), expected);
        let long =
            Key::new(&[0xaa; 131]).hash(b"Test Using Larger Than Block-Size Key - Hash Key First");
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hex(&long), expected);
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("journal.db");
        assert!(Key::load(&database).unwrap().is_none());
        Key::create(&database).unwrap();
        let key = Key::load(&database).unwrap().unwrap();
        Key::create(&database).unwrap();
        assert_eq!(Key::load(&database).unwrap().unwrap().id, key.id);
        let file = folder.path().join("journal.db.key");
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        Key::load(&database).unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::write(&file, "short").unwrap();
        assert!(Key::load(&database).is_err());
    }
}
