//! The statuses that this server returns, as numbered in [MS-ERREF].

/// An NTSTATUS.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $code:literal,)*) => {
        impl Status {
            $(pub const $name: Self = Self($code);)*

            /// As in logs and metrics.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "OTHER",
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0x0000_0000,
    PENDING = 0x0000_0103,
    NOTIFY_CLEANUP = 0x0000_010B,
    NOTIFY_ENUM_DIR = 0x0000_010C,
    BUFFER_OVERFLOW = 0x8000_0005,
    NO_MORE_FILES = 0x8000_0006,
    STOPPED_ON_SYMLINK = 0x8000_002D,
    UNSUCCESSFUL = 0xC000_0001,
    NOT_IMPLEMENTED = 0xC000_0002,
    INVALID_INFO_CLASS = 0xC000_0003,
    INFO_LENGTH_MISMATCH = 0xC000_0004,
    INVALID_HANDLE = 0xC000_0008,
    INVALID_PARAMETER = 0xC000_000D,
    NO_SUCH_DEVICE = 0xC000_000E,
    NO_SUCH_FILE = 0xC000_000F,
    INVALID_DEVICE_REQUEST = 0xC000_0010,
    END_OF_FILE = 0xC000_0011,
    MORE_PROCESSING_REQUIRED = 0xC000_0016,
    INVALID_VIEW_SIZE = 0xC000_001F,
    ACCESS_DENIED = 0xC000_0022,
    BUFFER_TOO_SMALL = 0xC000_0023,
    OBJECT_NAME_INVALID = 0xC000_0033,
    OBJECT_NAME_NOT_FOUND = 0xC000_0034,
    OBJECT_NAME_COLLISION = 0xC000_0035,
    OBJECT_PATH_INVALID = 0xC000_0039,
    OBJECT_PATH_NOT_FOUND = 0xC000_003A,
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
    SHARING_VIOLATION = 0xC000_0043,
    EAS_NOT_SUPPORTED = 0xC000_004F,
    NO_EAS_ON_FILE = 0xC000_0052,
    INVALID_SECURITY_DESCR = 0xC000_0079,
    FILE_LOCK_CONFLICT = 0xC000_0054,
    LOCK_NOT_GRANTED = 0xC000_0055,
    DELETE_PENDING = 0xC000_0056,
    PRIVILEGE_NOT_HELD = 0xC000_0061,
    LOGON_FAILURE = 0xC000_006D,
    ACCOUNT_DISABLED = 0xC000_0072,
    RANGE_NOT_LOCKED = 0xC000_007E,
    DISK_FULL = 0xC000_007F,
    INSUFFICIENT_RESOURCES = 0xC000_009A,
    BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
    MEDIA_WRITE_PROTECTED = 0xC000_00A2,
    PIPE_NOT_AVAILABLE = 0xC000_00AC,
    PIPE_DISCONNECTED = 0xC000_00B0,
    PIPE_EMPTY = 0xC000_00D9,
    IO_TIMEOUT = 0xC000_00B5,
    FILE_IS_A_DIRECTORY = 0xC000_00BA,
    NOT_SUPPORTED = 0xC000_00BB,
    NETWORK_NAME_DELETED = 0xC000_00C9,
    BAD_NETWORK_NAME = 0xC000_00CC,
    REQUEST_NOT_ACCEPTED = 0xC000_00D0,
    INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
    INTERNAL_ERROR = 0xC000_00E5,
    NOT_SAME_DEVICE = 0xC000_00D4,
    DIRECTORY_NOT_EMPTY = 0xC000_0101,
    NOT_A_DIRECTORY = 0xC000_0103,
    CANCELLED = 0xC000_0120,
    CANNOT_DELETE = 0xC000_0121,
    FILE_CLOSED = 0xC000_0128,
    FS_DRIVER_REQUIRED = 0xC000_019C,
    USER_SESSION_DELETED = 0xC000_0203,
    NOT_FOUND = 0xC000_0225,
    DUPLICATE_OBJECTID = 0xC000_022A,
    INVALID_DEVICE_STATE = 0xC000_0184,
    INSUFF_SERVER_RESOURCES = 0xC000_0205,
    NOT_A_REPARSE_POINT = 0xC000_0275,
    NETWORK_SESSION_EXPIRED = 0xC000_035C,
    INVALID_LOCK_RANGE = 0xC000_01A1,
    FILE_NOT_AVAILABLE = 0xC000_0467,
    REQUEST_OUT_OF_SEQUENCE = 0xC000_042A,
    HASH_NOT_SUPPORTED = 0xC000_A100,
}

impl Status {
    /// Whether the request was refused. An authentication that needs another step was not.
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3 && self.0 != Self::MORE_PROCESSING_REQUIRED.0
    }

    /// Whether it is a fault of this server.
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::INTERNAL_ERROR)
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}({:#010x})", self.name(), self.0)
    }
}

impl From<crate::wire::Malformed> for Status {
    fn from(_: crate::wire::Malformed) -> Self {
        Self::INVALID_PARAMETER
    }
}
