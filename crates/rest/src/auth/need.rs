//! What an operation asks of its caller.

/// What every role action begins with; operations name the rest.
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
    Actions { any_of: &'static [&'static [&'static str]], since: &'static str },
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
