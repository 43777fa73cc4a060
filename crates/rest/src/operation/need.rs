//! What a caller needs to be allowed an operation. Data only: `auth` compares it with what the
//! caller has.

use crate::version::Version;

/// What every role action begins with; rows name the rest.
pub const ACTION_PREFIX: &str = "Microsoft.Storage/storageAccounts/";

#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Whether a key of the account is enough. It is for all but the calls that give out keys made
    /// for a token.
    pub shared_key: bool,
    /// The letter of `srt` that an account SAS must have.
    pub resource_type: ResourceType,
    /// Alternatives; each is a set of letters of which `sp` must have all. Empty: no SAS of any
    /// kind is enough. One empty set: any valid SAS is.
    pub letters: &'static [&'static str],
    /// Whether a service SAS or a user delegation SAS with those letters is enough too.
    pub service_sas: bool,
    pub role: Role,
    pub anonymous: Anonymous,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceType {
    Service,
    Container,
    Object,
}

impl ResourceType {
    pub const fn letter(self) -> char {
        match self {
            Self::Service => 's',
            Self::Container => 'c',
            Self::Object => 'o',
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// No token is enough.
    NotSupported,
    /// Alternatives; each is a set of actions (after [`ACTION_PREFIX`]) that are all needed. One
    /// empty set: any valid token is enough.
    Actions { any_of: &'static [&'static [&'static str]], since: Version },
}

/// The level of public access of a container that lets callers without credentials in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Never,
    /// Containers that are public as a whole.
    Container,
    /// Also those of which only the blobs are public.
    Blob,
    /// Always: the request carries no credentials by its nature.
    Always,
}

pub(super) type Letters = &'static [&'static str];
pub(super) type Actions = &'static [&'static [&'static str]];

/// No SAS is enough.
pub(super) const NO_SAS: Letters = &[];
/// Any valid SAS is enough: what it allows is checked for each part of the request.
pub(super) const ANY_SAS: Letters = &[""];
pub(super) const CREATE: Letters = &["c", "w"];
pub(super) const READ: Letters = &["r"];
pub(super) const WRITE: Letters = &["w"];
pub(super) const DELETE: Letters = &["d"];
pub(super) const LIST: Letters = &["l"];
pub(super) const WRITE_OR_DELETE: Letters = &["w", "d"];

impl Need {
    const fn of(resource_type: ResourceType, letters: Letters, any_of: Actions) -> Self {
        Self {
            shared_key: true,
            resource_type,
            letters,
            service_sas: false,
            role: Role::Actions { any_of, since: Version::V2017_11_09 },
            anonymous: Anonymous::Never,
        }
    }

    pub(super) const fn service(letters: Letters, any_of: Actions) -> Self {
        Self::of(ResourceType::Service, letters, any_of)
    }

    pub(super) const fn container(letters: Letters, any_of: Actions) -> Self {
        Self::of(ResourceType::Container, letters, any_of)
    }

    /// Objects are what service SAS are made for.
    pub(super) const fn object(letters: Letters, any_of: Actions) -> Self {
        Self::of(ResourceType::Object, letters, any_of).with_service_sas()
    }

    /// Only the preflight of CORS: browsers send it without credentials.
    pub(super) const NOTHING: Self = Self {
        anonymous: Anonymous::Always,
        ..Self::of(ResourceType::Service, ANY_SAS, &[&[]]).with_service_sas()
    };

    pub(super) const fn with_service_sas(mut self) -> Self {
        self.service_sas = true;
        self
    }

    pub(super) const fn without_service_sas(mut self) -> Self {
        self.service_sas = false;
        self
    }

    pub(super) const fn without_role(mut self) -> Self {
        self.role = Role::NotSupported;
        self
    }

    pub(super) const fn role_since(mut self, version: Version) -> Self {
        self.role = match self.role {
            Role::NotSupported => Role::NotSupported,
            Role::Actions { any_of, .. } => Role::Actions { any_of, since: version },
        };
        self
    }

    pub(super) const fn token_only(mut self) -> Self {
        self.shared_key = false;
        self
    }

    pub(super) const fn public(mut self, level: Anonymous) -> Self {
        self.anonymous = level;
        self
    }
}
