//! List Directories and Files.
