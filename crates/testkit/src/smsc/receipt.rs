//! Receipts that the SMSC sends.

use super::octets::{DELIVER_SM, c_string, pdu, tlv};

/// Where a receipt contains its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptShape {
    /// In its text.
    Text,
    /// In its TLVs.
    Tlvs,
    /// In both.
    Both,
}

/// A receipt to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    id: String,
    state: u8,
    word: &'static str,
    err: u16,
    shape: ReceiptShape,
    esm_class: u8,
    text: Option<Vec<u8>>,
    from: Option<String>,
    to: String,
    data_coding: u8,
    more: Vec<u8>,
}

impl Receipt {
    /// The part with this ID was delivered.
    pub fn delivered(id: impl Into<String>) -> Self {
        Self::new(id, 2, "DELIVRD", 0)
    }

    /// The part with this ID could not be delivered, with this error code.
    pub fn failed(id: impl Into<String>, err: u16) -> Self {
        Self::new(id, 5, "UNDELIV", err)
    }

    /// The part with this ID is on its way.
    pub fn enroute(id: impl Into<String>) -> Self {
        Self::new(id, 1, "ENROUTE", 0)
    }

    /// Not a receipt at all: a message from a handset.
    pub fn message(text: impl Into<Vec<u8>>) -> Self {
        Self {
            esm_class: 0,
            text: Some(text.into()),
            ..Self::new("", 0, "", 0).shape(ReceiptShape::Text)
        }
    }

    fn new(id: impl Into<String>, state: u8, word: &'static str, err: u16) -> Self {
        Self {
            id: id.into(),
            state,
            word,
            err,
            shape: ReceiptShape::Both,
            esm_class: 0x04,
            text: None,
            from: None,
            to: "37120000002".to_owned(),
            data_coding: 0,
            more: Vec::new(),
        }
    }

    /// Sets where the receipt contains its data.
    #[must_use]
    pub fn shape(mut self, shape: ReceiptShape) -> Self {
        self.shape = shape;
        self
    }

    /// Sets `esm_class`.
    #[must_use]
    pub fn esm_class(mut self, esm_class: u8) -> Self {
        self.esm_class = esm_class;
        self
    }

    /// Sets the source address. By default, a receipt that a script sends has the recipient of its message there, and
    /// any other receipt has none.
    #[must_use]
    pub fn from(mut self, number: impl Into<String>) -> Self {
        self.from = Some(number.into());
        self
    }

    /// Sets the destination address.
    #[must_use]
    pub fn to(mut self, number: impl Into<String>) -> Self {
        self.to = number.into();
        self
    }

    /// Sets `data_coding`.
    #[must_use]
    pub fn data_coding(mut self, data_coding: u8) -> Self {
        self.data_coding = data_coding;
        self
    }

    pub(super) fn with_default_source(mut self, number: &str) -> Self {
        self.from.get_or_insert_with(|| number.to_owned());
        self
    }

    /// Appends octets, such as malformed TLVs.
    #[must_use]
    pub fn then(mut self, octets: &[u8]) -> Self {
        self.more.extend(octets);
        self
    }

    /// The whole PDU.
    pub fn to_pdu(&self, sequence: u32) -> Vec<u8> {
        let text = match (&self.text, self.shape) {
            (Some(text), _) => text.clone(),
            (None, ReceiptShape::Tlvs) => Vec::new(),
            (None, _) => format!(
                "id:{} sub:001 dlvrd:001 submit date:2401011200 done date:2401011201 stat:{} err:{:03} text:",
                self.id, self.word, self.err
            )
            .into_bytes(),
        };
        let mut body = c_string("");
        body.extend([1, 1]);
        body.extend(c_string(self.from.as_deref().unwrap_or_default()));
        body.extend([1, 1]);
        body.extend(c_string(&self.to));
        body.extend([self.esm_class, 0, 0, 0, 0, 0, 0, self.data_coding, 0]);
        body.push(u8::try_from(text.len()).expect("short"));
        body.extend(text);
        if self.shape != ReceiptShape::Text {
            body.extend(tlv(0x001E, &c_string(&self.id)));
            body.extend(tlv(0x0427, &[self.state]));
            if self.err > 0 {
                let [high, low] = self.err.to_be_bytes();
                body.extend(tlv(0x0423, &[3, high, low]));
            }
        }
        body.extend(&self.more);
        pdu(DELIVER_SM, 0, sequence, &body)
    }
}
