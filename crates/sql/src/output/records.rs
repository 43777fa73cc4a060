//! Text records that are complete, and the one being written.

#[derive(Default)]
pub struct Records {
    pub bytes: Vec<u8>,
    /// Where the record begins that is being written, and whether it has a field yet.
    start: usize,
    pub has_field: bool,
}

impl Records {
    /// The record that was being written is complete.
    pub fn end_record(&mut self) {
        self.start = self.bytes.len();
        self.has_field = false;
    }

    /// Forgets the record that is being written.
    pub fn drop_record(&mut self) {
        self.bytes.truncate(self.start);
        self.has_field = false;
    }

    /// How many bytes the complete records have.
    pub fn written(&self) -> usize {
        self.start
    }

    pub fn take(&mut self) -> Vec<u8> {
        self.start = 0;
        std::mem::take(&mut self.bytes)
    }
}
