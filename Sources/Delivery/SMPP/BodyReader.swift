import Bytes

/// A reader of the fields of a PDU's body, in order.
struct BodyReader {
    enum Fault: Error, CustomStringConvertible {
        case ended
        case tooLong

        var description: String {
            switch self {
            case .ended: "it ends too early"
            case .tooLong: "it contains a text that is too long"
            }
        }
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    private mutating func byte() throws(Fault) -> UInt8 {
        guard let byte = rest.popFirst() else { throw .ended }
        return byte
    }

    private mutating func take(_ count: Int) throws(Fault) -> [UInt8] {
        guard rest.count >= count else { throw .ended }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private mutating func half() throws(Fault) -> UInt16 {
        let (high, low) = (try byte(), try byte())
        return UInt16(high) << 8 | UInt16(low)
    }

    /// Reads a C string; the limit includes its terminating zero.
    mutating func string(upTo limit: Int) throws(Fault) -> String {
        guard let end = rest.prefix(limit).firstIndex(of: 0) else { throw rest.count < limit ? .ended : .tooLong }
        defer { rest = rest[(end + 1)...] }
        return String(decoding: rest[..<end], as: UTF8.self)
    }

    private mutating func address() throws(Fault) -> SMPPAddress {
        let (ton, npi) = (try byte(), try byte())
        return SMPPAddress(ton: ton, npi: npi, text: try string(upTo: 65))
    }

    mutating func bind() throws(Fault) -> PDU.Bind {
        // The limits exceed those of the specification, because gateways issue longer values.
        let (systemID, password, systemType) = (try string(upTo: 65), try string(upTo: 65), try string(upTo: 65))
        let (version, ton, npi) = (try byte(), try byte(), try byte())
        return PDU.Bind(
            systemID: systemID, password: Secret(utf8: password), systemType: systemType, version: version, ton: ton,
            npi: npi,
            range: try string(upTo: 41))
    }

    mutating func message() throws(Fault) -> ShortMessage {
        var message = ShortMessage()
        message.serviceType = try string(upTo: 6)
        message.source = try address()
        message.destination = try address()
        message.esmClass = try byte()
        message.protocolID = try byte()
        message.priority = try byte()
        message.schedule = try string(upTo: 17)
        message.validity = try string(upTo: 17)
        message.registeredDelivery = try byte()
        message.replaceIfPresent = try byte()
        message.dataCoding = try byte()
        message.defaultMessage = try byte()
        message.text = try take(Int(try byte()))
        message.parameters = try parameters()
        return message
    }

    /// Reads the body of data_sm (SMPP 3.4 §4.7.1).
    mutating func data() throws(Fault) -> ShortMessage {
        var message = ShortMessage()
        message.serviceType = try string(upTo: 6)
        message.source = try address()
        message.destination = try address()
        message.esmClass = try byte()
        message.registeredDelivery = try byte()
        message.dataCoding = try byte()
        message.parameters = try parameters()
        return message
    }

    private mutating func parameters() throws(Fault) -> [Parameter] {
        var parameters: [Parameter] = []
        while !rest.isEmpty {
            let (tag, length) = (try half(), try half())
            parameters.append(Parameter(tag, try take(Int(length))))
        }
        return parameters
    }
}
