//! Writing XML answers, straight into the buffer that is sent.

use quick_xml::escape::escape;

pub struct Writer {
    out: String,
}

impl Writer {
    pub fn document() -> Self {
        Self { out: String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>") }
    }

    /// A part of a document that another writer began.
    pub fn fragment() -> Self {
        Self { out: String::new() }
    }

    pub fn open(&mut self, name: &str) {
        self.open_with(name, &[]);
    }

    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(value);
            self.out.push('"');
        }
        self.out.push('>');
    }

    pub fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub fn element(&mut self, name: &str, text: &str) {
        self.element_with(name, &[], text);
    }

    pub fn element_with(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open_with(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// An element with only attributes.
    pub fn empty_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.open_with(name, attributes);
        self.close(name);
    }

    pub fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    pub fn finish(self) -> String {
        self.out
    }

    fn text(&mut self, text: &str) {
        if text.chars().all(is_character) {
            self.escaped(text);
        } else {
            let fit: String = text.chars().filter(|letter| is_character(*letter)).collect();
            self.escaped(&fit);
        }
    }

    /// XML parsers take a carriage return for a line end, unless it is written as a reference.
    fn escaped(&mut self, text: &str) {
        for (at, line) in text.split('\r').enumerate() {
            if at > 0 {
                self.out.push_str("&#xD;");
            }
            self.out.push_str(&escape(line));
        }
    }
}

/// Whether XML 1.0 can carry the character at all; clients may have sent any.
pub fn is_character(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}'
        | '\u{10000}'..='\u{10FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_values_is_escaped_and_unfit_characters_are_left_out() {
        let mut xml = Writer::document();
        xml.open_with("A", &[("b", "\"<&")]);
        xml.element("C", "x<y&z\u{1}>");
        xml.element("L", "\r\n\t");
        xml.optional("D", None);
        xml.close("A");
        assert_eq!(
            xml.finish(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
             <A b=\"&quot;&lt;&amp;\"><C>x&lt;y&amp;z&gt;</C><L>&#xD;\n\t</L></A>"
        );
    }
}
