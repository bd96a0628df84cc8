//! `command_id`: the types of PDUs.

/// This bit is set in responses; the other bits are those of the request.
pub const RESPONSE: u32 = 0x8000_0000;

macro_rules! commands {
    ($($code:literal $name:ident $text:literal)+) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub const $name: u32 = $code;
        )+

        /// The command's name in the specification.
        pub const fn name(command: u32) -> Option<&'static str> {
            match command {
                $($code => Some($text),)+
                _ => None,
            }
        }
    };
}

commands! {
    0x0000_0001 BIND_RECEIVER "bind_receiver"
    0x0000_0002 BIND_TRANSMITTER "bind_transmitter"
    0x0000_0003 QUERY_SM "query_sm"
    0x0000_0004 SUBMIT_SM "submit_sm"
    0x0000_0005 DELIVER_SM "deliver_sm"
    0x0000_0006 UNBIND "unbind"
    0x0000_0007 REPLACE_SM "replace_sm"
    0x0000_0008 CANCEL_SM "cancel_sm"
    0x0000_0009 BIND_TRANSCEIVER "bind_transceiver"
    0x0000_000B OUTBIND "outbind"
    0x0000_0015 ENQUIRE_LINK "enquire_link"
    0x0000_0021 SUBMIT_MULTI "submit_multi"
    0x0000_0102 ALERT_NOTIFICATION "alert_notification"
    0x0000_0103 DATA_SM "data_sm"
    0x0000_0111 BROADCAST_SM "broadcast_sm"
    0x0000_0112 QUERY_BROADCAST_SM "query_broadcast_sm"
    0x0000_0113 CANCEL_BROADCAST_SM "cancel_broadcast_sm"
    0x8000_0000 GENERIC_NACK "generic_nack"
    0x8000_0001 BIND_RECEIVER_RESP "bind_receiver_resp"
    0x8000_0002 BIND_TRANSMITTER_RESP "bind_transmitter_resp"
    0x8000_0003 QUERY_SM_RESP "query_sm_resp"
    0x8000_0004 SUBMIT_SM_RESP "submit_sm_resp"
    0x8000_0005 DELIVER_SM_RESP "deliver_sm_resp"
    0x8000_0006 UNBIND_RESP "unbind_resp"
    0x8000_0007 REPLACE_SM_RESP "replace_sm_resp"
    0x8000_0008 CANCEL_SM_RESP "cancel_sm_resp"
    0x8000_0009 BIND_TRANSCEIVER_RESP "bind_transceiver_resp"
    0x8000_0015 ENQUIRE_LINK_RESP "enquire_link_resp"
    0x8000_0021 SUBMIT_MULTI_RESP "submit_multi_resp"
    0x8000_0103 DATA_SM_RESP "data_sm_resp"
    0x8000_0111 BROADCAST_SM_RESP "broadcast_sm_resp"
    0x8000_0112 QUERY_BROADCAST_SM_RESP "query_broadcast_sm_resp"
    0x8000_0113 CANCEL_BROADCAST_SM_RESP "cancel_broadcast_sm_resp"
}

/// Whether the command is a response. A response is never answered.
pub const fn is_response(command: u32) -> bool {
    command & RESPONSE != 0
}
