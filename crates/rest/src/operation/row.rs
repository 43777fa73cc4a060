//! The shape of a row of the operation table.

use std::fmt;

use bitflags::bitflags;

use super::{Conditions, LeaseHeaders, Need, Operation, Second, SourceCredentials};
use crate::version::Version;

/// What is known of one operation without running it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub operation: Operation,
    /// As in the reference.
    pub name: &'static str,
    pub verbs: Verbs,
    pub scope: Scope,
    pub restype: Option<Restype>,
    pub comp: Option<Comp>,
    /// What else a request must have; among rows that are equal otherwise, the one with the most
    /// selectors applies whose selectors are all met.
    pub selectors: &'static [Selector],
    /// The first version of the service that has it.
    pub since: Version,
    /// The statuses of success.
    pub success: &'static [u16],
    pub need: Need,
    pub second: Second,
    pub conditions: Conditions,
    pub lease: LeaseHeaders,
    /// Whether this server serves it; the others are answered 501 `NotImplemented`.
    pub built: bool,
}

impl Row {
    pub(super) const fn new(
        operation: Operation,
        name: &'static str,
        verbs: Verbs,
        scope: Scope,
        need: Need,
    ) -> Self {
        Self {
            operation,
            name,
            verbs,
            scope,
            restype: None,
            comp: None,
            selectors: &[],
            since: Version::V2009_09_19,
            success: &[200],
            need,
            second: Second::None,
            conditions: Conditions::empty(),
            lease: LeaseHeaders::None,
            built: false,
        }
    }

    pub(super) const fn restype(mut self, restype: Restype) -> Self {
        self.restype = Some(restype);
        self
    }

    pub(super) const fn comp(mut self, comp: Comp) -> Self {
        self.comp = Some(comp);
        self
    }

    pub(super) const fn when(mut self, selectors: &'static [Selector]) -> Self {
        self.selectors = selectors;
        self
    }

    pub(super) const fn since(mut self, version: Version) -> Self {
        self.since = version;
        self
    }

    pub(super) const fn success(mut self, statuses: &'static [u16]) -> Self {
        self.success = statuses;
        self
    }

    pub(super) const fn reads(mut self, by: SourceCredentials) -> Self {
        self.second = Second::Read(by);
        self
    }

    pub(super) const fn uses(mut self, need: Need) -> Self {
        self.second = Second::Use(need);
        self
    }

    pub(super) const fn in_parts(mut self) -> Self {
        self.second = Second::Parts;
        self
    }

    pub(super) const fn conditions(mut self, conditions: Conditions) -> Self {
        self.conditions = conditions;
        self
    }

    pub(super) const fn lease(mut self, lease: LeaseHeaders) -> Self {
        self.lease = lease;
        self
    }

    /// Built if an optional part of the server is compiled in.
    pub(super) const fn built_with(mut self, part: bool) -> Self {
        self.built = part;
        self
    }

    pub(super) const fn built(mut self) -> Self {
        self.built = true;
        self
    }
}

/// What kind of resource the path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Any path at all.
    Any,
    Service,
    Container,
    Blob,
    Queue,
    Messages,
    Message,
    Tables,
    TableEntry,
    Table,
    /// There are no operations here; Insert Entity is found as if the path ended with the table.
    BelowTable,
    Entity,
    TableBatch,
    TableMetadata,
    Share,
    /// A directory or a file, depending on `restype`.
    Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Head,
    Put,
    Post,
    Delete,
    Options,
    Merge,
    Patch,
}

impl Verb {
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::Head,
        Self::Put,
        Self::Post,
        Self::Delete,
        Self::Options,
        Self::Merge,
        Self::Patch,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Merge => "MERGE",
            Self::Patch => "PATCH",
        }
    }

    /// Methods are case-sensitive.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }
}

bitflags! {
    /// A set of methods, as the `Allow` header lists them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Verbs: u8 {
        const GET = 1 << Verb::Get as u8;
        const HEAD = 1 << Verb::Head as u8;
        const PUT = 1 << Verb::Put as u8;
        const POST = 1 << Verb::Post as u8;
        const DELETE = 1 << Verb::Delete as u8;
        const OPTIONS = 1 << Verb::Options as u8;
        const MERGE = 1 << Verb::Merge as u8;
        const PATCH = 1 << Verb::Patch as u8;
    }
}

impl Verbs {
    pub const GET_OR_HEAD: Self = Self::GET.union(Self::HEAD);
    pub const MERGE_OR_PATCH: Self = Self::MERGE.union(Self::PATCH);

    pub const fn has(self, verb: Verb) -> bool {
        self.bits() & (1 << verb as u8) != 0
    }

    pub fn each(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.has(*verb))
    }
}

impl fmt::Display for Verbs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, verb) in self.each().enumerate() {
            if at > 0 {
                formatter.write_str(", ")?;
            }
            formatter.write_str(verb.as_str())?;
        }
        Ok(())
    }
}

/// Something a request must have besides its path, `restype` and `comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The header is present.
    Header(&'static str),
    /// The header is present with one of these values.
    HeaderIs(&'static str, &'static [&'static str]),
    /// `Accept` names this media type before all others.
    Accepts(&'static str),
    /// The query parameter is present and not empty.
    Query(&'static str),
    /// The query parameter has this value.
    QueryIs(&'static str, &'static str),
    /// The query parameter or the header is present.
    QueryOrHeader(&'static str, &'static str),
}

macro_rules! query_values {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($variant,)* }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Compared without case, as the services do.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str().eq_ignore_ascii_case(text))
            }
        }
    };
}

query_values! {
    /// The values of the query parameter `restype`.
    Restype {
        Service = "service",
        Account = "account",
        Container = "container",
        Share = "share",
        Directory = "directory",
        SymbolicLink = "symboliclink",
        HardLink = "hardlink",
    }
}

query_values! {
    /// The values of the query parameter `comp`.
    Comp {
        Acl = "acl",
        AppendBlock = "appendblock",
        Batch = "batch",
        Blobs = "blobs",
        Block = "block",
        BlockList = "blocklist",
        Copy = "copy",
        Expiry = "expiry",
        FilePermission = "filepermission",
        ForceCloseHandles = "forceclosehandles",
        ImmutabilityPolicies = "immutabilityPolicies",
        IncrementalCopy = "incrementalcopy",
        Lease = "lease",
        LegalHold = "legalhold",
        List = "list",
        ListHandles = "listhandles",
        Metadata = "metadata",
        Page = "page",
        PageList = "pagelist",
        Properties = "properties",
        Query = "query",
        Range = "range",
        RangeList = "rangelist",
        Rename = "rename",
        Seal = "seal",
        Snapshot = "snapshot",
        Stats = "stats",
        Tags = "tags",
        Tier = "tier",
        Undelete = "undelete",
        UserDelegationKey = "userdelegationkey",
    }
}
