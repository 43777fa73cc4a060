//! Queues and their messages.
