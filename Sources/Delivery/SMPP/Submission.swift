import GSM

/// The submit_sm bodies of a message: one, or one for each part of a long text.
struct Submission {
    let parts: [ShortMessage]

    enum Fault: Error {
        case refused(String)
        case undeliverable(String)

        var outcome: SMPPOutcome {
            switch self {
            case .refused(let reason): .refused(reason)
            case .undeliverable(let reason): .undeliverable(reason)
            }
        }
    }

    init(_ message: SMPPMessage, _ options: SMPPOptions) throws(Fault) {
        guard let destination = SMPPAddress(message.to), destination.ton != 5 else {
            throw .refused("the recipient is not a telephone number")
        }
        let text = MessageSegments(message.text)
        guard text.parts.count <= options.maxParts else {
            throw .undeliverable("the text has \(text.parts.count) SMS segments, the limit is \(options.maxParts)")
        }
        var body = ShortMessage()
        body.source = message.from ?? options.source ?? .none
        body.destination = destination.typed(options.destinationKind)
        body.dataCoding = text.coding == .gsm7 ? 0 : 8
        body.registeredDelivery = options.wantsReceipts ? 1 : 0
        if let validity = message.validity { body.validity = Self.relative(validity) }
        guard text.parts.count > 1 else {
            body.text = text.parts[0]
            parts = [body]
            return
        }
        if options.longTexts == .payload {
            body.parameters = [Parameter(Parameter.messagePayload, text.parts.flatMap(\.self))]
            parts = [body]
            return
        }
        let reference = Self.reference(message.id)
        parts = text.parts.enumerated().map { index, part in
            var body = body
            let (low, total, number) = (UInt8(truncatingIfNeeded: reference), UInt8(text.parts.count), UInt8(index + 1))
            if options.longTexts == .sar {
                body.text = part
                body.parameters = [
                    Parameter(Parameter.sarReference, [UInt8(reference >> 8), low]),
                    Parameter(Parameter.sarTotal, [total]), Parameter(Parameter.sarPart, [number]),
                ]
            } else {
                // The user data header has five further octets: element 0, its length 3, then
                // reference, number of parts and part number.
                body.esmClass = 0x40
                body.text = [5, 0, 3, low, total, number] + part
            }
            return body
        }
    }

    /// Returns the reference number of a long text. It depends only on the id (FNV-1a, folded), so
    /// every attempt has the same one.
    private static func reference(_ id: String) -> UInt16 {
        let hash = id.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        let folded = UInt16(truncatingIfNeeded: hash ^ hash >> 16)
        return folded & 0xff00 | (folded ^ folded >> 8) & 0xff
    }

    /// Encodes a relative time (SMPP 3.4 §7.1.1.2): YYMMDDhhmmss, tenths, quarter hours, R. The
    /// result is between one minute and 28 days.
    static func relative(_ duration: Duration) -> String {
        var seconds = max(60, min(duration.components.seconds, 28 * 86_400))
        var text = "0000"
        for unit in [86_400, 3600, 60, 1] as [Int64] {
            let count = seconds / unit
            text += count < 10 ? "0\(count)" : "\(count)"
            seconds %= unit
        }
        return text + "000R"
    }
}
