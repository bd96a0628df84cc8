//! The optional parameters of a PDU.

use bytes::Bytes;

use crate::tag;

/// Optional parameters in the order of the wire, including unknown ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tlvs(Vec<(u16, Bytes)>);

/// The value of `network_error_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkErrorCode {
    /// 1 ANSI-136, 2 IS-95, 3 GSM, and others by agreement.
    pub network: u8,
    /// The network's error code.
    pub code: u16,
}

impl Tlvs {
    /// An empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of parameters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a parameter, even if its tag is already present.
    pub fn push(&mut self, tag: u16, value: impl Into<Bytes>) {
        self.0.push((tag, value.into()));
    }

    /// Appends a parameter of one octet.
    pub fn push_u8(&mut self, tag: u16, value: u8) {
        self.push(tag, Bytes::copy_from_slice(&[value]));
    }

    /// Appends a parameter of two octets.
    pub fn push_u16(&mut self, tag: u16, value: u16) {
        self.push(tag, Bytes::copy_from_slice(&value.to_be_bytes()));
    }

    /// Appends a C string, such as `receipted_message_id`. The NUL is added.
    pub fn push_c_string(&mut self, tag: u16, text: &[u8]) {
        let mut value = Vec::with_capacity(text.len() + 1);
        value.extend_from_slice(text);
        value.push(0);
        self.push(tag, value);
    }

    /// The first with this tag.
    pub fn get(&self, tag: u16) -> Option<&Bytes> {
        self.iter()
            .find_map(|(found, value)| (found == tag).then_some(value))
    }

    /// All parameters, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u16, &Bytes)> {
        self.0.iter().map(|(tag, value)| (*tag, value))
    }

    /// The first with this tag, if it has one octet.
    pub fn get_u8(&self, tag: u16) -> Option<u8> {
        match self.get(tag)?.as_ref() {
            [value] => Some(*value),
            _ => None,
        }
    }

    /// The first with this tag, as a number of one or two octets: some peers omit the leading zero.
    pub fn get_u16(&self, tag: u16) -> Option<u16> {
        match *self.get(tag)?.as_ref() {
            [low] => Some(low.into()),
            [high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        }
    }

    /// The first with this tag, up to its NUL if it has one.
    pub fn get_c_string(&self, tag: u16) -> Option<Bytes> {
        let value = self.get(tag)?;
        let end = value.iter().position(|octet| *octet == 0);
        Some(value.slice(..end.unwrap_or(value.len())))
    }

    /// The text of a message that is too long for `short_message`.
    pub fn message_payload(&self) -> Option<&Bytes> {
        self.get(tag::MESSAGE_PAYLOAD)
    }

    /// The ID of the message that a receipt is about.
    pub fn receipted_message_id(&self) -> Option<Bytes> {
        self.get_c_string(tag::RECEIPTED_MESSAGE_ID)
    }

    /// The state in a receipt; see [`message_state`](crate::message_state).
    pub fn message_state(&self) -> Option<u8> {
        self.get_u8(tag::MESSAGE_STATE)
    }

    /// The network's error.
    pub fn network_error_code(&self) -> Option<NetworkErrorCode> {
        match *self.get(tag::NETWORK_ERROR_CODE)?.as_ref() {
            [network, high, low] => Some(NetworkErrorCode {
                network,
                code: u16::from_be_bytes([high, low]),
            }),
            _ => None,
        }
    }

    /// The reference number that all segments of a message share.
    pub fn sar_msg_ref_num(&self) -> Option<u16> {
        self.get_u16(tag::SAR_MSG_REF_NUM)
    }

    /// The number of segments of a message.
    pub fn sar_total_segments(&self) -> Option<u8> {
        self.get_u8(tag::SAR_TOTAL_SEGMENTS)
    }

    /// The number of this segment, from 1.
    pub fn sar_segment_seqnum(&self) -> Option<u8> {
        self.get_u8(tag::SAR_SEGMENT_SEQNUM)
    }

    /// The protocol version of the SMSC: 0x34, 0x50.
    pub fn sc_interface_version(&self) -> Option<u8> {
        self.get_u8(tag::SC_INTERFACE_VERSION)
    }

    /// A text that explains why a request failed.
    pub fn additional_status_info_text(&self) -> Option<Bytes> {
        self.get_c_string(tag::ADDITIONAL_STATUS_INFO_TEXT)
    }

    /// Why a delivery failed, in `data_sm_resp`.
    pub fn delivery_failure_reason(&self) -> Option<u8> {
        self.get_u8(tag::DELIVERY_FAILURE_REASON)
    }

    /// The sender's reference number of a message.
    pub fn user_message_reference(&self) -> Option<u16> {
        self.get_u16(tag::USER_MESSAGE_REFERENCE)
    }

    /// The source application port.
    pub fn source_port(&self) -> Option<u16> {
        self.get_u16(tag::SOURCE_PORT)
    }

    /// The destination application port.
    pub fn destination_port(&self) -> Option<u16> {
        self.get_u16(tag::DESTINATION_PORT)
    }

    /// Where in the phone a message goes: 1 display, 2 equipment, 3 SIM, 4 external unit.
    pub fn dest_addr_subunit(&self) -> Option<u8> {
        self.get_u8(tag::DEST_ADDR_SUBUNIT)
    }

    /// 0 for WDP, 1 for WCMP.
    pub fn payload_type(&self) -> Option<u8> {
        self.get_u8(tag::PAYLOAD_TYPE)
    }

    /// The load of the peer, from 0 to 99 (5.0).
    pub fn congestion_state(&self) -> Option<u8> {
        self.get_u8(tag::CONGESTION_STATE)
    }
}

impl FromIterator<(u16, Bytes)> for Tlvs {
    fn from_iter<I: IntoIterator<Item = (u16, Bytes)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{NetworkErrorCode, Tlvs};
    use crate::tag;

    #[test]
    fn typed_ones_read_what_was_pushed() {
        let mut tlvs = Tlvs::new();
        tlvs.push_c_string(tag::RECEIPTED_MESSAGE_ID, b"ab12");
        tlvs.push_u8(tag::MESSAGE_STATE, 2);
        tlvs.push(tag::NETWORK_ERROR_CODE, &[3, 1, 2][..]);
        tlvs.push_u16(tag::SAR_MSG_REF_NUM, 0x1234);
        tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 3);
        tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 1);
        tlvs.push(tag::ADDITIONAL_STATUS_INFO_TEXT, &b"no NUL"[..]);
        assert_eq!(tlvs.receipted_message_id().as_deref(), Some(&b"ab12"[..]));
        assert_eq!(tlvs.message_state(), Some(2));
        let error = NetworkErrorCode {
            network: 3,
            code: 0x0102,
        };
        assert_eq!(tlvs.network_error_code(), Some(error));
        assert_eq!(tlvs.sar_msg_ref_num(), Some(0x1234));
        assert_eq!(tlvs.sar_total_segments(), Some(3));
        assert_eq!(tlvs.sar_segment_seqnum(), Some(1));
        assert_eq!(
            tlvs.additional_status_info_text().as_deref(),
            Some(&b"no NUL"[..])
        );
        assert_eq!((tlvs.len(), tlvs.iter().len()), (7, 7));
    }

    #[test]
    fn values_of_a_wrong_length_are_no_values() {
        let mut tlvs = Tlvs::new();
        tlvs.push(tag::MESSAGE_STATE, &[][..]);
        tlvs.push(tag::NETWORK_ERROR_CODE, &[3, 1][..]);
        tlvs.push(tag::SAR_MSG_REF_NUM, &[7][..]);
        assert_eq!(tlvs.message_state(), None);
        assert_eq!(tlvs.network_error_code(), None);
        assert_eq!(tlvs.sar_msg_ref_num(), Some(7));
        assert_eq!(tlvs.get(tag::SOURCE_PORT), None);
    }

    #[test]
    fn the_first_of_a_tag_counts_and_all_are_kept() {
        let mut tlvs = Tlvs::new();
        tlvs.push_u8(0x1400, 1);
        tlvs.push_u8(0x1400, 2);
        assert_eq!(tlvs.get_u8(0x1400), Some(1));
        assert_eq!(tlvs.len(), 2);
    }
}
