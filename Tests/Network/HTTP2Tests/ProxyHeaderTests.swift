import EventLoop
import TestSupport
import Testing
import World

@testable import HTTP2

/// Version 2 of the PROXY protocol (HAProxy's doc/proxy-protocol.txt, section 2.2), byte by byte.
@Suite struct ProxyHeaderTests {
    typealias Fault = ProxyHeader.Fault

    /// The result of a read in a form that can be compared.
    private enum Outcome: Equatable {
        case incomplete(Int)
        case local
        case relayed(String)
        case refused(Fault)
    }

    private func read(_ bytes: [UInt8]) -> Outcome {
        do throws(Fault) {
            switch try ProxyHeader.read(bytes) {
            case .incomplete(let missing): return .incomplete(missing)
            case .whole(.local): return .local
            case .whole(.relayed(let source)): return .relayed("\(source)")
            }
        } catch {
            return .refused(error)
        }
    }

    private static let four = ProxyHeaderBytes.four([192, 0, 2, 7], port: 0x1234)

    @Test func addressesAreReadAtTheSpecifiedOffsets() {
        #expect(read(Self.four) == .relayed("192.0.2.7:4660"))
        let source: [UInt8] = [0x20, 1, 0x0d, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]
        let target: [UInt8] = Array(repeating: 0xee, count: 16)
        let six = ProxyHeaderBytes.header(0x21, 0x21, source + target + [0x12, 0x34, 0xee, 0xee])
        #expect(read(six) == .relayed("[2001:db8:1:2:3:4:5:6]:4660"))
        let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xff, 0xff, 192, 0, 2, 7]
        #expect(
            read(ProxyHeaderBytes.header(0x21, 0x21, mapped + target + [0x12, 0x34, 0, 0]))
                == .relayed("192.0.2.7:4660"))
    }

    /// The bytes are a capture of a connection from HAProxy 2.6.12 to a server on the same machine.
    @Test func haproxyHeaderIsRead() {
        let sent: [UInt8] = [
            0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0x00, 0x0c,
            0x7f, 0x00, 0x00, 0x01, 0x7f, 0x00, 0x00, 0x01, 0xd8, 0x80, 0x74, 0xaf,
        ]
        #expect(read(sent) == .relayed("127.0.0.1:55424"))
    }

    /// The specification says: "The receiver must accept this connection as valid and must use the
    /// real connection endpoints and discard the protocol block including the family which is
    /// ignored". This applies to a block of any length.
    @Test func localCommandHasNoClientAddress() {
        #expect(read(ProxyHeaderBytes.local) == .local)
        for family in UInt8.min...UInt8.max {
            #expect(read(ProxyHeaderBytes.header(0x20, family, [1, 2, 3])) == .local)
        }
    }

    @Test func extensionsAfterTheAddressesAreSkipped() {
        // PP2_TYPE_AUTHORITY "example.com", then a byte that is no TLV.
        let more = [0x02, 0, 11] + Array("example.com".utf8) + [0xff]
        let long = Self.four[16...] + more
        #expect(read(ProxyHeaderBytes.header(0x21, 0x11, Array(long))) == .relayed("192.0.2.7:4660"))
        // The bytes after the header are not read.
        #expect(read(Self.four + [0x16, 3, 1]) == .relayed("192.0.2.7:4660"))
    }

    @Test func otherCommandsVersionsAndFamiliesAreRefused() {
        for byte in UInt8.min...UInt8.max where byte != 0x20 && byte != 0x21 {
            var bytes = Self.four
            bytes[12] = byte
            #expect(read(bytes) == .refused(byte >> 4 == 2 ? .command : .signature), "\(byte)")
        }
        // UDP, UNIX and UNSPEC with the address length of the specification, and all undefined
        // families.
        for byte in UInt8.min...UInt8.max where byte != 0x11 && byte != 0x21 {
            #expect(read(ProxyHeaderBytes.header(0x21, byte, Array(repeating: 0, count: 216))) == .refused(.family))
        }
    }

    @Test func wrongSignatureIsRefusedAtItsFirstByte() {
        #expect(read(Array("PROXY TCP4 192.0.2.7 192.0.2.1 4660 443\r\n".utf8)) == .refused(.signature))
        #expect(read([0x16]) == .refused(.signature), "TLS")
        #expect(read(Array("PRI * HTTP/2.0\r\n".utf8)) == .refused(.signature))
        for place in 0..<12 {
            var bytes = Array(Self.four[...place])
            #expect(read(bytes) == .incomplete(16 - place - 1))
            bytes[place] ^= 0x20
            #expect(read(bytes) == .refused(.signature), "\(place)")
        }
    }

    /// All values of the length field, for a header of which only the prefix has arrived.
    @Test(arguments: [(0x21, 0x11, 12), (0x21, 0x21, 36), (0x20, 0, 0)] as [(UInt8, UInt8, Int)])
    func everyHeaderLengthIsAwaitedOrRefused(command: UInt8, family: UInt8, least: Int) {
        let wrong = (1...Int(UInt16.max)).filter { length in
            let outcome = read(ProxyHeaderBytes.prefix(command, family, length: length))
            if length < least { return outcome != .refused(.short) }
            return outcome != (length > 4096 ? .refused(.long) : .incomplete(length))
        }
        #expect(wrong.isEmpty)
        #expect(read(ProxyHeaderBytes.prefix(command, family, length: 0)) == (least == 0 ? .local : .refused(.short)))
    }

    @Test func truncatedHeaderIsAwaitedWithoutReadingFurther() {
        for whole in [Self.four, ProxyHeaderBytes.local, ProxyHeaderBytes.header(0x21, 0x21, Array(0..<99))] {
            for count in 0..<whole.count {
                guard case .incomplete(let missing) = read(Array(whole[..<count])) else {
                    Issue.record("cut at \(count): \(read(Array(whole[..<count])))")
                    continue
                }
                #expect(missing > 0 && count + missing <= whole.count)
            }
        }
    }

    /// The result for random bytes, or for a header with a changed byte, matches those bytes.
    @Test(arguments: [1, 2, 3] as [UInt64]) func randomBytesGiveAResult(seed: UInt64) {
        var chance = SeededRandomness(seed: seed)
        var wrong: [[UInt8]] = []
        for _ in 0..<20_000 {
            var bytes = ProxyHeaderBytes.header(
                UInt8.random(in: 0x20...0x22, using: &chance),
                [0, 0x11, 0x21, 0x31].randomElement(using: &chance) ?? 0,
                chance.bytes(Int.random(in: 0...60, using: &chance)))
            if Bool.random(using: &chance) {
                let place = Int.random(in: 0..<bytes.count, using: &chance)
                bytes[place] = UInt8.random(in: 0...255, using: &chance)
            }
            bytes = Array(bytes[..<Int.random(in: 0...bytes.count, using: &chance)])
            let end = bytes.count < 16 ? 16 : 16 + (Int(bytes[14]) << 8) + Int(bytes[15])
            let isBorneOut =
                switch read(bytes) {
                case .incomplete(let missing): bytes.count + missing == end
                case .local: bytes[12] == 0x20 && bytes.count >= end
                case .relayed:
                    bytes[12] == 0x21 && bytes.count >= end && end >= (bytes[13] == 0x11 ? 28 : 52)
                case .refused(let fault): fault != .late && fault != .cut
                }
            if !isBorneOut { wrong.append(bytes) }
        }
        #expect(wrong.isEmpty)
    }
}
