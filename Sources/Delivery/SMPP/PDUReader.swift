/// Cuts what comes over the line into PDUs, whatever comes. Holds no more than one of them.
package struct PDUReader {
    /// None that we understand comes near it.
    package static let longest = 65_536
    private static let header = 16

    package enum Received: Sendable, Equatable {
        case pdu(PDU)
        /// Its length is right, and so the next one can be read. What it says cannot.
        case malformed(command: UInt32, status: SMPPStatus, sequence: UInt32, String)
    }

    /// A length that cannot be: nobody knows where the next PDU begins.
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

    /// Nil until the rest of it has come. After a throw the line is of no use any more.
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
        // A refusal has no body, or one that says nothing.
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
