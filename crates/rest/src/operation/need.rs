//! What a caller needs for an operation. Data only: `auth` compares it with what the caller has.

use crate::version::Version;

/// The prefix of every role action; rows have the rest.
pub const ACTION_PREFIX: &str = "Microsoft.Storage/storageAccounts/";

#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Whether an account key is enough. It is, except for getting user delegation keys, which
    /// needs a token.
    pub shared_key: bool,
    /// The letter of `srt` that an account SAS must have.
    pub resource_type: ResourceType,
    /// Alternatives; each is a set of letters that `sp` must contain. Empty: no SAS of any kind is
    /// enough. One empty set: any valid SAS is.
    pub letters: &'static [&'static str],
    /// The first version of signatures in which `c` is enough as well, if nothing is replaced.
    pub create_since: Option<&'static str>,
    /// Whether a service SAS or a user delegation SAS with those letters is enough, too.
    pub service_sas: bool,
    pub actions: NeededActions,
    pub anonymous: Anonymous,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceType {
    Service,
    Container,
    Object,
    /// Either of the two letters will do.
    ContainerOrObject,
}

impl ResourceType {
    /// One of these must be in `srt`.
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Service => "s",
            Self::Container => "c",
            Self::Object => "o",
            Self::ContainerOrObject => "co",
        }
    }
}

/// The second resource of a request, besides that of its address, and which credentials open it.
#[derive(Clone, Copy, Debug)]
pub enum Second {
    /// There is none.
    None,
    /// A source that is read as by Get Blob or Get File.
    Read(SourceCredentials),
    /// A resource that is moved or linked: by the credentials in its own URL, if any, or else those
    /// of the caller, which must cover it, too.
    Use(Need),
    /// The parts of a batch, each authorized by its own operation.
    Parts,
}

/// Which credentials open a source on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceCredentials {
    /// The signature in its URL or a token for the source; without them, public access.
    Own,
    /// Those, or the caller's account key or role if both are in the same account. A signature of
    /// the caller never counts: it is for the destination.
    OwnOrOfAccount,
}

/// What a token needs.
#[derive(Clone, Copy, Debug)]
pub struct NeededActions {
    /// Alternatives; each is a set of actions (without [`ACTION_PREFIX`]), all of which are needed.
    /// One empty set: any role in the account is enough.
    pub any_of: &'static [&'static [&'static str]],
    /// The first version that accepts tokens.
    pub since: Version,
}

/// The level of public access of a container that allows the operation without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Never,
    /// Containers with public access to the container.
    Container,
    /// Also those with public access to blobs only.
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
pub(super) const READ_AND_WRITE: Letters = &["rw"];

impl Need {
    const fn of(resource_type: ResourceType, letters: Letters, any_of: Actions) -> Self {
        Self {
            shared_key: true,
            resource_type,
            letters,
            create_since: None,
            service_sas: false,
            actions: NeededActions { any_of, since: Version::V2017_11_09 },
            anonymous: Anonymous::Never,
        }
    }

    pub(super) const fn service(letters: Letters, any_of: Actions) -> Self {
        Self::of(ResourceType::Service, letters, any_of)
    }

    pub(super) const fn container(letters: Letters, any_of: Actions) -> Self {
        Self::of(ResourceType::Container, letters, any_of)
    }

    /// For objects, where a service SAS is enough.
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

    pub(super) const fn role_since(mut self, version: Version) -> Self {
        self.actions.since = version;
        self
    }

    pub(super) const fn creating_since(mut self, version: &'static str) -> Self {
        self.create_since = Some(version);
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
