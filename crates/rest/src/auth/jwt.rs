//! Signed tokens: reading them, and checking their signatures with a set of public keys.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use super::roles::ClaimTexts;

/// A token in its three parts, decoded but not yet verified.
pub(super) struct Token<'a> {
    pub header: Header,
    pub claims: Claims,
    signed: &'a [u8],
    signature: Vec<u8>,
}

#[derive(Deserialize)]
pub(super) struct Header {
    alg: String,
    kid: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Claims {
    pub iss: Option<String>,
    pub aud: Option<OneOrMany>,
    pub exp: Option<f64>,
    pub nbf: Option<f64>,
    pub oid: Option<String>,
    pub sub: Option<String>,
    pub tid: Option<String>,
    pub name: Option<String>,
    pub upn: Option<String>,
    /// All claims that are texts, numbers or lists of them.
    #[serde(skip)]
    pub texts: ClaimTexts,
}

impl Claims {
    fn from_json(json: &[u8]) -> Option<Self> {
        let all: serde_json::Map<String, Value> = serde_json::from_slice(json).ok()?;
        let texts = all.iter().map(|(name, value)| (name.clone(), texts(value))).collect();
        let claims: Self = serde_json::from_value(Value::Object(all)).ok()?;
        Some(Self { texts, ..claims })
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Bool(truth) => vec![truth.to_string()],
        Value::Array(values) => values.iter().flat_map(scalar).collect(),
        Value::Object(_) | Value::Null => Vec::new(),
    }
}

/// A nested list is ignored.
fn scalar(value: &Value) -> Vec<String> {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => texts(value),
        Value::Array(_) | Value::Object(_) | Value::Null => Vec::new(),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        };
        all.iter().map(String::as_str)
    }
}

impl<'a> Token<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok();
        Some(Self {
            header: serde_json::from_slice(&decode(header)?).ok()?,
            claims: Claims::from_json(&decode(claims)?)?,
            signed: signed.as_bytes(),
            signature: decode(signature)?,
        })
    }
}

/// The current keys of an issuer. Issuers change them; the task that fetches them replaces them here.
#[derive(Debug, Default)]
pub struct KeyRing {
    current: ArcSwap<KeySet>,
    missed: Notify,
}

impl KeyRing {
    pub fn of(keys: KeySet) -> Self {
        Self { current: ArcSwap::from_pointee(keys), missed: Notify::new() }
    }

    pub fn replace(&self, keys: KeySet) {
        self.current.store(Arc::new(keys));
    }

    /// Returns when a token names a key that is not here: it may be a new one.
    pub async fn missed(&self) {
        self.missed.notified().await;
    }

    pub(super) fn verifies(&self, token: &Token<'_>) -> bool {
        let keys = self.current.load();
        if !keys.has_key_of(token) {
            self.missed.notify_one();
        }
        keys.verifies(token)
    }
}

/// The public keys of an issuer, from the text of its JSON Web Key Set. Keys of other kinds are
/// ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<PublicKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PublicKey {
    id: Option<String>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point of P-256, uncompressed.
    P256(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeySet {
    #[error("the key set is not the JSON of a JSON Web Key Set")]
    NotJson,
    #[error("the key set has no RSA or P-256 key for signatures")]
    NoUsableKey,
}

#[derive(Deserialize)]
struct JsonKeySet {
    keys: Vec<JsonKey>,
}

#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl JsonKey {
    fn material(&self) -> Option<Material> {
        let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                Some(Material::Rsa { modulus: decode(&self.n)?, exponent: decode(&self.e)? })
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (decode(&self.x)?, decode(&self.y)?);
                let uncompressed = [0x04];
                Some(Material::P256([&uncompressed, x.as_slice(), &y].concat()))
            }
            _ => None,
        }
    }
}

impl KeySet {
    pub fn from_json(text: &str) -> Result<Self, InvalidKeySet> {
        let set: JsonKeySet = serde_json::from_str(text).map_err(|_| InvalidKeySet::NotJson)?;
        let for_signatures = set
            .keys
            .into_iter()
            .filter(|key| key.purpose.as_deref().is_none_or(|use_| use_ == "sig"));
        let keys: Vec<PublicKey> = for_signatures
            .filter_map(|key| Some(PublicKey { material: key.material()?, id: key.kid }))
            .collect();
        if keys.is_empty() { Err(InvalidKeySet::NoUsableKey) } else { Ok(Self { keys }) }
    }

    fn has_key_of(&self, token: &Token<'_>) -> bool {
        self.keys.iter().any(|key| token.header.kid.is_none() || key.id == token.header.kid)
    }

    /// Whether one of the keys verifies the signature: the named one, if the token names one.
    fn verifies(&self, token: &Token<'_>) -> bool {
        let Header { alg, kid } = &token.header;
        let named = |key: &&PublicKey| kid.is_none() || key.id == *kid;
        self.keys.iter().filter(named).any(|key| key.material.verifies(alg, token))
    }
}

impl Material {
    /// The kind of key decides which algorithms are allowed, whatever the token claims.
    fn verifies(&self, algorithm: &str, token: &Token<'_>) -> bool {
        let (signed, signature) = (token.signed, token.signature.as_slice());
        let verified = match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, "RS256") => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            (Self::Rsa { modulus, exponent }, "PS256") => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PSS_2048_8192_SHA256, signed, signature)
            }
            (Self::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Self::Rsa { .. } | Self::P256(_), _) => return false,
        };
        verified.is_ok()
    }
}
