import Testing

@testable import SMPP

@Suite struct ReceiptTests {
    private func receipt(
        _ text: String, esmClass: UInt8 = 0x04, _ parameters: [Parameter] = [], inPayload: Bool = false
    ) -> SMPPReceipt? {
        var message = ShortMessage()
        message.esmClass = esmClass
        if inPayload {
            message.parameters = [Parameter(Parameter.messagePayload, Array(text.utf8))] + parameters
        } else {
            message.text = Array(text.utf8)
            message.parameters = parameters
        }
        return SMPPReceipt(message)
    }

    /// A receipt in the form of SMPP 3.4, appendix B.
    private let delivered =
        "id:0123456789 sub:001 dlvrd:001 submit date:0809011130 done date:0809011131 stat:DELIVRD err:000 text:id:9 stat:EXPIRED"

    @Test func appendixBReceiptIsParsed() throws {
        for found in [receipt(delivered), receipt(delivered, inPayload: true)] {
            let found = try #require(found)
            #expect(found.messageID == "0123456789")
            #expect(found.state == .delivered)
            #expect(found.error == "000")
            #expect(found.id == nil)
        }
        let words: [(String, SMPPReceipt.State)] = [
            ("DELIVRD", .delivered), ("EXPIRED", .expired), ("DELETED", .deleted), ("UNDELIV", .undeliverable),
            ("ACCEPTD", .accepted), ("UNKNOWN", .unknown), ("REJECTD", .rejected), ("ENROUTE", .enroute),
            ("undeliv", .undeliverable), ("whatever", .unknown),
        ]
        for (word, state) in words { #expect(receipt("ID:1 Stat:\(word)")?.state == state, "\(word)") }
        #expect(receipt("id:1")?.state == .unknown)
    }

    @Test func optionalParametersTakePrecedence() throws {
        let parameters = [
            Parameter(Parameter.receiptedMessageID, Array("abc\0".utf8)), Parameter(Parameter.messageState, [5]),
            Parameter(Parameter.networkErrorCode, [3, 1, 2]),
        ]
        for found in [receipt(delivered, parameters), receipt("", esmClass: 0, parameters)] {
            let found = try #require(found)
            #expect(found.messageID == "abc")
            #expect(found.state == .undeliverable)
            #expect(found.error == "258")
        }
        #expect(receipt("id:1 stat:DELIVRD", [Parameter(Parameter.messageState, [])])?.state == .delivered)
        #expect(receipt("id:1", [Parameter(Parameter.messageState, [99])])?.state == .unknown)
    }

    /// A receipt in data_sm, which has no text: octet by octet as in §4.7.1.
    @Test func receiptInDataSMIsParsed() throws {
        let bytes: [UInt8] =
            [0, 0, 0, 47, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 9]
            + [0] + [1, 1] + Array("4917\0".utf8) + [5, 0] + Array("Shop\0".utf8)  // service_type, source, destination
            + [4, 0, 0]  // esm_class, registered_delivery, data_coding
            + [0, 0x1e, 0, 4] + Array("abc\0".utf8)  // receipted_message_id
            + [0x04, 0x27, 0, 1, 2]  // message_state
        var reader = PDUReader()
        reader.feed(bytes)
        guard case .pdu(let pdu)? = try reader.next(), case .data(let message) = pdu.body else {
            Issue.record("it cannot be read")
            return
        }
        #expect(pdu.bytes == bytes && pdu.sequence == 9)
        #expect(message.source == SMPPAddress(ton: 1, npi: 1, text: "4917") && message.destination.text == "Shop")
        let receipt = try #require(SMPPReceipt(message))
        #expect(receipt.messageID == "abc" && receipt.state == .delivered)
        #expect(PDU(.dataResponse, sequence: 9).bytes == [0, 0, 0, 17, 0x80, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0])
    }

    @Test func otherMessagesAreNoReceipts() {
        #expect(receipt(delivered, esmClass: 0) == nil)
        #expect(receipt("STOP") == nil)
        #expect(receipt("id: stat:DELIVRD") == nil)
        #expect(receipt("") == nil)
        #expect(receipt("text:id:1 stat:DELIVRD") == nil)
    }

    /// Returns the message of a new receipt: nil if it was reported before, empty if the message is unknown.
    private func reported(_ book: inout ReceiptDeduplicator, _ text: String) -> String? {
        receipt(text).flatMap { book.takeNew($0) }.map { $0.id ?? "" }
    }

    @Test func repeatedReceiptIsReportedOnce() {
        var book = ReceiptDeduplicator(capacity: 3)
        let first = "id:1 stat:DELIVRD"
        book.sent("1", of: "ours")
        #expect(reported(&book, first) == "ours")
        #expect(reported(&book, first) == nil)
        #expect(reported(&book, "id:1 stat:EXPIRED") == "ours")
        // The oldest ids are forgotten when as many others arrive as it keeps.
        for number in 2...5 {
            book.sent("\(number)", of: "other \(number)")
            #expect(reported(&book, "id:\(number) stat:DELIVRD") == "other \(number)")
        }
        #expect(reported(&book, first) == "")
    }

    @Test func decimalAndHexadecimalIDsMatch() {
        var book = ReceiptDeduplicator()
        book.sent("0A1B2C3D", of: "padded")
        book.sent("ff", of: "lower")
        book.sent("4096", of: "decimal")
        #expect(reported(&book, "id:169552957 stat:DELIVRD") == "padded")
        #expect(reported(&book, "id:255 stat:DELIVRD") == "lower")
        #expect(reported(&book, "id:1000 stat:DELIVRD") == "decimal")
        #expect(reported(&book, "id:77 stat:DELIVRD") == "")
    }
}
