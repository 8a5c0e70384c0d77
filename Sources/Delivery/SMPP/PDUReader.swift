/// Splits a byte stream into PDUs and accepts any input. It holds at most one incomplete PDU
/// besides the bytes of the last `feed`.
package struct PDUReader {
    /// The maximum length in bytes, far above that of any supported PDU.
    package static let longest = 65_536
    private static let header = 16

    package enum Received: Sendable, Equatable {
        case pdu(PDU)
        /// The length is valid, so the next PDU can be read; the contents are invalid.
        case malformed(command: UInt32, status: SMPPStatus, sequence: UInt32, String)
    }

    /// An impossible length: the start of the next PDU is unknown.
    package struct Lost: Error, Equatable, CustomStringConvertible {
        package let length: UInt32
        package var description: String { "a PDU of \(length) bytes" }
    }

    private var held: [UInt8] = []
    private var start = 0

    package init() {}

    package mutating func feed(_ bytes: some Sequence<UInt8>) {
        if start > 0 {
            held.removeFirst(start)
            start = 0
        }
        held.append(contentsOf: bytes)
    }

    /// Returns the next PDU; nil until all of it has arrived. After an error the connection is
    /// unusable.
    package mutating func next() throws(Lost) -> Received? {
        guard held.count - start >= 4 else { return nil }
        let length = number(at: 0)
        guard length >= UInt32(Self.header), length <= UInt32(Self.longest) else { throw Lost(length: length) }
        guard held.count - start >= Int(length) else { return nil }
        let (command, status, sequence) = (number(at: 4), SMPPStatus(number(at: 8)), number(at: 12))
        let body = held[(start + Self.header)..<(start + Int(length))]
        start += Int(length)
        if start == held.count {
            held.removeAll(keepingCapacity: held.capacity <= 8192)
            start = 0
            return Self.read(command, status, sequence, BodyReader(body))
        }
        return Self.read(command, status, sequence, BodyReader(body))
    }

    private func number(at offset: Int) -> UInt32 {
        held[(start + offset)..<(start + offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func read(
        _ command: UInt32, _ status: SMPPStatus, _ sequence: UInt32, _ reader: BodyReader
    ) -> Received {
        do throws(BodyReader.Fault) {
            var reader = reader
            return .pdu(PDU(try body(command, status, &reader), sequence: sequence, status: status))
        } catch {
            return .malformed(command: command, status: status, sequence: sequence, error.description)
        }
    }

    private static func body(
        _ command: UInt32, _ status: SMPPStatus, _ reader: inout BodyReader
    ) throws(BodyReader.Fault) -> PDU.Body {
        typealias Command = PDU.Command
        // An error response has no body, or one without information.
        let isRefusal = command & Command.response != 0 && status != .ok
        switch command {
        case Command.bindTransmitter: return .bind(.transmitter, try reader.bind())
        case Command.bindTransceiver: return .bind(.transceiver, try reader.bind())
        case Command.bindTransmitter | Command.response:
            return .bindResponse(.transmitter, systemID: isRefusal ? "" : try reader.string(upTo: 16))
        case Command.bindTransceiver | Command.response:
            return .bindResponse(.transceiver, systemID: isRefusal ? "" : try reader.string(upTo: 16))
        case Command.submit: return .submit(try reader.message())
        case Command.submit | Command.response:
            return .submitResponse(messageID: isRefusal ? "" : try reader.string(upTo: 65))
        case Command.deliver: return .deliver(try reader.message())
        case Command.deliver | Command.response: return .deliverResponse
        case Command.data: return .data(try reader.data())
        case Command.data | Command.response: return .dataResponse
        case Command.enquireLink: return .enquireLink
        case Command.enquireLink | Command.response: return .enquireLinkResponse
        case Command.unbind: return .unbind
        case Command.unbind | Command.response: return .unbindResponse
        case Command.genericNack: return .genericNack
        default: return .other(command)
        }
    }
}
