//! Sessions: the user logged on over a connection, with keys and opens.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::auth::{Exchange, User};
use crate::crypto::derivation::{Binding, Purpose};
use crate::crypto::{Cipher, CipherKey, PreauthHash, SessionKey, Signer, SigningAlgorithm};
use crate::dialect::{Dialect, Negotiated};
use crate::opens::Opens;
use crate::tree::Tree;

/// More than any client needs; each costs memory.
pub const TREES_MAX: usize = 1024;

pub struct Session {
    pub id: u64,
    /// An authentication under way: the first, or a reauthentication of an existing session.
    pub exchange: tokio::sync::Mutex<Option<Exchange>>,
    /// Up to the last message of the first authentication.
    pub preauth: Arc<Mutex<PreauthHash>>,
    established: OnceLock<Established>,
    trees: Mutex<Trees>,
    pub opens: Opens,
}

#[derive(Default)]
struct Trees {
    by_id: HashMap<u32, Arc<Tree>>,
    last_id: u32,
}

/// An authenticated session.
pub struct Established {
    pub user: User,
    /// The dialect of its connection.
    pub dialect: Dialect,
    pub signing: SigningAlgorithm,
    pub cipher: Option<Cipher>,
    pub signer: Signer,
    pub ciphers: Option<Ciphers>,
    pub signing_required: bool,
    /// Whether all messages must be encrypted.
    pub encryption_required: bool,
}

/// The keys of both directions.
pub struct Ciphers {
    pub from_client: CipherKey,
    to_client: CipherKey,
    nonces: AtomicU64,
}

impl Ciphers {
    fn new(negotiated: &Negotiated, binding: &Binding, key: &SessionKey) -> Option<Self> {
        let cipher = negotiated.cipher?;
        let direction = |purpose| CipherKey::new(cipher, &binding.cipher_key(key, purpose, cipher));
        Some(Self {
            from_client: direction(Purpose::FromClient),
            to_client: direction(Purpose::ToClient),
            nonces: AtomicU64::new(0),
        })
    }

    /// The key for messages to the client, with an unused nonce.
    pub fn to_client(&self) -> (&CipherKey, [u8; 16]) {
        let mut nonce = [0; 16];
        let number = self.nonces.fetch_add(1, Ordering::Relaxed);
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        (&self.to_client, nonce)
    }
}

impl Established {
    pub fn new(
        user: User,
        key: &SessionKey,
        negotiated: &Negotiated,
        preauth: PreauthHash,
        requirements: Requirements,
    ) -> Self {
        let binding = match negotiated.dialect {
            Dialect::Smb2_0_2 | Dialect::Smb2_1 => None,
            Dialect::Smb3_0 | Dialect::Smb3_0_2 => Some(Binding::Words),
            Dialect::Smb3_1_1 => Some(Binding::Preauth(preauth)),
        };
        let signing_key = binding.as_ref().map_or(*key, |binding| binding.signing_key(key));
        let ciphers = binding.as_ref().and_then(|binding| Ciphers::new(negotiated, binding, key));
        Self {
            user,
            dialect: negotiated.dialect,
            signing: negotiated.signing,
            cipher: negotiated.cipher,
            signer: Signer::new(negotiated.signing, &signing_key),
            encryption_required: requirements.encryption && ciphers.is_some(),
            ciphers,
            signing_required: requirements.signing,
        }
    }
}

/// What a session requires, by the settings or by its client.
#[derive(Clone, Copy, Debug)]
pub struct Requirements {
    pub signing: bool,
    pub encryption: bool,
}

impl Session {
    pub fn new(id: u64, preauth: PreauthHash) -> Self {
        Self {
            id,
            exchange: tokio::sync::Mutex::default(),
            preauth: Arc::new(Mutex::new(preauth)),
            established: OnceLock::new(),
            trees: Mutex::default(),
            opens: Opens::default(),
        }
    }

    /// Only the first call has an effect; later authentications change nothing.
    pub fn establish(&self, established: Established) {
        let _ = self.established.set(established);
    }

    pub fn established(&self) -> Option<&Established> {
        self.established.get()
    }

    /// Adds a tree under a new number; `None` if there are too many.
    pub fn add_tree(&self, tree: impl FnOnce(u32) -> Tree) -> Option<Arc<Tree>> {
        let mut trees = self.trees.lock();
        if trees.by_id.len() >= TREES_MAX {
            return None;
        }
        loop {
            trees.last_id = trees.last_id.wrapping_add(1);
            let id = trees.last_id;
            // 0 is no tree, and all ones mean the tree of a related request.
            if id != 0 && id != u32::MAX && !trees.by_id.contains_key(&id) {
                let tree = Arc::new(tree(id));
                trees.by_id.insert(id, Arc::clone(&tree));
                return Some(tree);
            }
        }
    }

    pub fn tree(&self, id: u32) -> Option<Arc<Tree>> {
        self.trees.lock().by_id.get(&id).cloned()
    }

    pub fn remove_tree(&self, id: u32) -> Option<Arc<Tree>> {
        self.trees.lock().by_id.remove(&id)
    }

    pub fn remove_all_trees(&self) {
        self.trees.lock().by_id.clear();
    }
}
