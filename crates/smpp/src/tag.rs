//! Tags of optional parameters (TLVs): all of SMPP 3.4 and 5.0.

macro_rules! tags {
    ($($code:literal $name:ident $text:literal)+) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub const $name: u16 = $code;
        )+

        /// The tag's name in the specification.
        pub const fn name(tag: u16) -> Option<&'static str> {
            match tag {
                $($code => Some($text),)+
                _ => None,
            }
        }
    };
}

tags! {
    0x0005 DEST_ADDR_SUBUNIT "dest_addr_subunit"
    0x0006 DEST_NETWORK_TYPE "dest_network_type"
    0x0007 DEST_BEARER_TYPE "dest_bearer_type"
    0x0008 DEST_TELEMATICS_ID "dest_telematics_id"
    0x000D SOURCE_ADDR_SUBUNIT "source_addr_subunit"
    0x000E SOURCE_NETWORK_TYPE "source_network_type"
    0x000F SOURCE_BEARER_TYPE "source_bearer_type"
    0x0010 SOURCE_TELEMATICS_ID "source_telematics_id"
    0x0017 QOS_TIME_TO_LIVE "qos_time_to_live"
    0x0019 PAYLOAD_TYPE "payload_type"
    0x001D ADDITIONAL_STATUS_INFO_TEXT "additional_status_info_text"
    0x001E RECEIPTED_MESSAGE_ID "receipted_message_id"
    0x0030 MS_MSG_WAIT_FACILITIES "ms_msg_wait_facilities"
    0x0201 PRIVACY_INDICATOR "privacy_indicator"
    0x0202 SOURCE_SUBADDRESS "source_subaddress"
    0x0203 DEST_SUBADDRESS "dest_subaddress"
    0x0204 USER_MESSAGE_REFERENCE "user_message_reference"
    0x0205 USER_RESPONSE_CODE "user_response_code"
    0x020A SOURCE_PORT "source_port"
    0x020B DESTINATION_PORT "destination_port"
    0x020C SAR_MSG_REF_NUM "sar_msg_ref_num"
    0x020D LANGUAGE_INDICATOR "language_indicator"
    0x020E SAR_TOTAL_SEGMENTS "sar_total_segments"
    0x020F SAR_SEGMENT_SEQNUM "sar_segment_seqnum"
    0x0210 SC_INTERFACE_VERSION "sc_interface_version"
    0x0302 CALLBACK_NUM_PRES_IND "callback_num_pres_ind"
    0x0303 CALLBACK_NUM_ATAG "callback_num_atag"
    0x0304 NUMBER_OF_MESSAGES "number_of_messages"
    0x0381 CALLBACK_NUM "callback_num"
    0x0420 DPF_RESULT "dpf_result"
    0x0421 SET_DPF "set_dpf"
    0x0422 MS_AVAILABILITY_STATUS "ms_availability_status"
    0x0423 NETWORK_ERROR_CODE "network_error_code"
    0x0424 MESSAGE_PAYLOAD "message_payload"
    0x0425 DELIVERY_FAILURE_REASON "delivery_failure_reason"
    0x0426 MORE_MESSAGES_TO_SEND "more_messages_to_send"
    0x0427 MESSAGE_STATE "message_state"
    0x0428 CONGESTION_STATE "congestion_state"
    0x0501 USSD_SERVICE_OP "ussd_service_op"
    0x0600 BROADCAST_CHANNEL_INDICATOR "broadcast_channel_indicator"
    0x0601 BROADCAST_CONTENT_TYPE "broadcast_content_type"
    0x0602 BROADCAST_CONTENT_TYPE_INFO "broadcast_content_type_info"
    0x0603 BROADCAST_MESSAGE_CLASS "broadcast_message_class"
    0x0604 BROADCAST_REP_NUM "broadcast_rep_num"
    0x0605 BROADCAST_FREQUENCY_INTERVAL "broadcast_frequency_interval"
    0x0606 BROADCAST_AREA_IDENTIFIER "broadcast_area_identifier"
    0x0607 BROADCAST_ERROR_STATUS "broadcast_error_status"
    0x0608 BROADCAST_AREA_SUCCESS "broadcast_area_success"
    0x0609 BROADCAST_END_TIME "broadcast_end_time"
    0x060A BROADCAST_SERVICE_GROUP "broadcast_service_group"
    0x060B BILLING_IDENTIFICATION "billing_identification"
    0x060D SOURCE_NETWORK_ID "source_network_id"
    0x060E DEST_NETWORK_ID "dest_network_id"
    0x060F SOURCE_NODE_ID "source_node_id"
    0x0610 DEST_NODE_ID "dest_node_id"
    0x0611 DEST_ADDR_NP_RESOLUTION "dest_addr_np_resolution"
    0x0612 DEST_ADDR_NP_INFORMATION "dest_addr_np_information"
    0x0613 DEST_ADDR_NP_COUNTRY "dest_addr_np_country"
    0x1201 DISPLAY_TIME "display_time"
    0x1203 SMS_SIGNAL "sms_signal"
    0x1204 MS_VALIDITY "ms_validity"
    0x130C ALERT_ON_MESSAGE_DELIVERY "alert_on_message_delivery"
    0x1380 ITS_REPLY_TYPE "its_reply_type"
    0x1383 ITS_SESSION_INFO "its_session_info"
}
