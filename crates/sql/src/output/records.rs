//! Complete text records, and the one being written.

#[derive(Default)]
pub struct Records {
    pub bytes: Vec<u8>,
    /// The start of the current record, and whether it has a field yet.
    start: usize,
    pub has_field: bool,
}

impl Records {
    /// The current record is complete.
    pub fn end_record(&mut self) {
        self.start = self.bytes.len();
        self.has_field = false;
    }

    /// Drops the current record.
    pub fn drop_record(&mut self) {
        self.bytes.truncate(self.start);
        self.has_field = false;
    }

    /// The length of the complete records.
    pub fn written(&self) -> usize {
        self.start
    }

    pub fn take(&mut self) -> Vec<u8> {
        self.start = 0;
        std::mem::take(&mut self.bytes)
    }
}
