/// A delivery receipt: the later state of a part that the gateway accepted.
public struct SMPPReceipt: Sendable, Equatable {
    public enum State: String, Sendable, Equatable {
        case enroute, delivered, expired, deleted, undeliverable, accepted, unknown, rejected

        /// Reads the number of `message_state` (SMPP 3.4 §5.2.28).
        init(number: UInt8) {
            let states: [State] = [
                .enroute, .delivered, .expired, .deleted, .undeliverable, .accepted, .unknown, .rejected,
            ]
            self = (1...8).contains(number) ? states[Int(number) - 1] : .unknown
        }

        /// Reads a state word of SMPP 3.4 appendix B.
        init(word: String) {
            switch word.uppercased() {
            case "ENROUTE": self = .enroute
            case "DELIVRD": self = .delivered
            case "EXPIRED": self = .expired
            case "DELETED": self = .deleted
            case "UNDELIV": self = .undeliverable
            case "ACCEPTD": self = .accepted
            case "REJECTD": self = .rejected
            default: self = .unknown
            }
        }
    }

    /// The gateway's id of one part.
    public let messageID: String
    /// The relay's id of the message; nil unless this client sent it recently.
    public internal(set) var id: String?
    public let state: State
    /// The network's error code.
    public let error: String?

    /// Reads a receipt. Returns nil if the message is something else, such as a text that a phone
    /// sent.
    init?(_ message: ShortMessage) {
        // Bits 2 to 5 mark a receipt (1) or an intermediate notification (8).
        let isReceipt = [0x04, 0x20].contains(message.esmClass & 0x3c)
        let named = message.parameter(Parameter.receiptedMessageID).map { value in
            String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard isReceipt || named != nil else { return nil }
        // The fields are ASCII and at the beginning; the text of the message comes last.
        let fields = Self.fields(of: String(decoding: message.octets.prefix(300), as: UTF8.self))
        guard let messageID = named ?? fields["id"], !messageID.isEmpty else { return nil }
        self.messageID = messageID
        if let number = message.parameter(Parameter.messageState)?.first {
            state = State(number: number)
        } else {
            state = State(word: fields["stat"] ?? "")
        }
        if let code = message.parameter(Parameter.networkErrorCode), code.count == 3 {
            error = String(UInt16(code[1]) << 8 | UInt16(code[2]))
        } else {
            error = fields["err"]
        }
    }

    /// Splits `id:… sub:… dlvrd:… submit date:… done date:… stat:… err:… text:…`, in upper or lower
    /// case.
    private static func fields(of text: String) -> [String: String] {
        var fields: [String: String] = [:]
        for word in text.split(whereSeparator: { $0 == " " || $0 == "\r" || $0 == "\n" || $0 == "\r\n" || $0 == "\0" })
        {
            guard let colon = word.firstIndex(of: ":") else { continue }
            let name = word[..<colon].lowercased()
            guard name != "text" else { break }
            if fields[name] == nil { fields[name] = String(word[word.index(after: colon)...]) }
        }
        return fields
    }
}

/// The recent messages and the receipts that were already reported. Gateways repeat a receipt until
/// they are sure of its arrival, and sometimes longer.
struct ReceiptDeduplicator {
    private struct Reported: Hashable {
        let messageID: String
        let state: SMPPReceipt.State
    }

    private let capacity: Int
    private var sent: [String: String] = [:]
    private var sentInOrder = Ring<String>()
    private var reported: Set<Reported> = []
    private var reportedInOrder = Ring<Reported>()

    init(capacity: Int = 10_000) { self.capacity = capacity }

    mutating func sent(_ messageID: String, of id: String) {
        guard sent.updateValue(id, forKey: messageID) == nil else { return }
        if let oldest = sentInOrder.append(messageID, keeping: capacity) { sent[oldest] = nil }
    }

    /// Returns the receipt with the relay's id of the message; nil if it was already reported.
    mutating func takeNew(_ receipt: SMPPReceipt) -> SMPPReceipt? {
        let entry = Reported(messageID: receipt.messageID, state: receipt.state)
        guard reported.insert(entry).inserted else { return nil }
        if let oldest = reportedInOrder.append(entry, keeping: capacity) { reported.remove(oldest) }
        var receipt = receipt
        receipt.id = Self.spellings(of: receipt.messageID).compactMap { sent[$0] }.first
        return receipt
    }

    /// Returns the spellings of an id. Some gateways answer a submit with a hexadecimal number and
    /// write it in decimal into the receipt, or the reverse (Kannel has `msg-id-type` for them).
    private static func spellings(of messageID: String) -> [String] {
        var spellings = [messageID]
        if let decimal = UInt64(messageID) {
            let hex = String(decimal, radix: 16)
            spellings += [
                hex, hex.uppercased(), String(repeating: "0", count: max(0, 8 - hex.count)) + hex.uppercased(),
            ]
        }
        if let hex = UInt64(messageID, radix: 16) { spellings.append(String(hex)) }
        return spellings
    }
}

/// A ring buffer of the latest elements.
private struct Ring<Element> {
    private var elements: [Element] = []
    private var oldest = 0

    /// Adds an element. Returns the oldest one if it had to be removed.
    mutating func append(_ element: Element, keeping capacity: Int) -> Element? {
        guard elements.count >= capacity else {
            elements.append(element)
            return nil
        }
        defer { oldest = (oldest + 1) % elements.count }
        let last = elements[oldest]
        elements[oldest] = element
        return last
    }
}
