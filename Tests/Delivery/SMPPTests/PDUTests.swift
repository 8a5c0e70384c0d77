import Bytes
import TestSupport
import Testing
import World

@testable import SMPP

@Suite struct PDUTests {
    /// The example of SMPP 3.4 §3.2.1, byte by byte.
    private let example: [UInt8] = [
        0x00, 0x00, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
        0x53, 0x4d, 0x50, 0x50, 0x33, 0x54, 0x45, 0x53, 0x54, 0x00,
        0x73, 0x65, 0x63, 0x72, 0x65, 0x74, 0x30, 0x38, 0x00,
        0x53, 0x55, 0x42, 0x4d, 0x49, 0x54, 0x31, 0x00,
        0x00, 0x01, 0x01, 0x00,
    ]

    private func read(_ bytes: [UInt8]) throws -> [PDUReader.Received] {
        var reader = PDUReader()
        reader.feed(bytes)
        var found: [PDUReader.Received] = []
        while let next = try reader.next() { found.append(next) }
        return found
    }

    @Test func specificationExampleIsEncoded() throws {
        let bind = PDU.Bind(
            systemID: "SMPP3TEST", password: Secret(utf8: "secret08"), systemType: "SUBMIT1", version: 0, ton: 1, npi: 1
        )
        let pdu = PDU(.bind(.transmitter, bind), sequence: 1)
        #expect(pdu.bytes == example)
        #expect(try read(example) == [.pdu(pdu)])
    }

    /// Encoded by hand after the table of SMPP 3.4 §4.4.1.
    @Test func submitPDUIsEncoded() throws {
        var message = ShortMessage()
        message.source = SMPPAddress(ton: 5, npi: 0, text: "Shop")
        message.destination = SMPPAddress(ton: 1, npi: 1, text: "491701234567")
        message.validity = "000000001000000R"
        message.registeredDelivery = 1
        message.text = Array("Code 1".utf8)
        let bytes: [UInt8] =
            [0, 0, 0, 0x47, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2]
            + [0]  // service_type
            + [5, 0] + Array("Shop\0".utf8)
            + [1, 1] + Array("491701234567\0".utf8)
            + [0, 0, 0]  // esm_class, protocol_id, priority_flag
            + [0]  // schedule_delivery_time
            + Array("000000001000000R\0".utf8)
            + [1, 0, 0, 0]  // registered_delivery, replace_if_present_flag, data_coding, sm_default_msg_id
            + [6] + Array("Code 1".utf8)
        let pdu = PDU(.submit(message), sequence: 258)
        #expect(pdu.bytes == bytes)
        #expect(try read(bytes) == [.pdu(pdu)])
    }

    private var samples: [PDU] {
        var message = ShortMessage()
        message.source = SMPPAddress(ton: 1, npi: 1, text: "49170")
        message.esmClass = 4
        message.text = Array("id:1 stat:DELIVRD".utf8)
        message.parameters = [Parameter(0x1e, [0x31, 0]), Parameter(0x427, [2]), Parameter(0x1400, [])]
        let bind = PDU.Bind(systemID: "a", password: Secret(utf8: "b"), systemType: "")
        return [
            PDU(.bind(.transmitter, bind), sequence: 1), PDU(.bind(.transceiver, bind), sequence: 2),
            PDU(.bindResponse(.transmitter, systemID: "gw"), sequence: 3),
            PDU(.bindResponse(.transceiver, systemID: ""), sequence: 3, status: .wrongPassword),
            PDU(.submit(message), sequence: 4), PDU(.submitResponse(messageID: "abc"), sequence: 5),
            PDU(.submitResponse(messageID: ""), sequence: 6, status: .throttled), PDU(.deliver(message), sequence: 7),
            PDU(.deliverResponse, sequence: 8), PDU(.enquireLink, sequence: 9), PDU(.enquireLinkResponse, sequence: 10),
            PDU(.unbind, sequence: 11), PDU(.unbindResponse, sequence: 12),
            PDU(.genericNack, sequence: 13, status: .wrongLength), PDU(.other(0x102), sequence: 14),
        ]
    }

    @Test func pduRoundTrips() throws {
        #expect(try read(samples.flatMap(\.bytes)) == samples.map { .pdu($0) })
        // A byte at a time.
        var reader = PDUReader()
        var found: [PDUReader.Received] = []
        for byte in samples.flatMap(\.bytes) {
            reader.feed([byte])
            while let next = try reader.next() { found.append(next) }
        }
        #expect(found == samples.map { .pdu($0) })
    }

    @Test func truncatedBodyIsMalformed() throws {
        for pdu in samples {
            let whole = pdu.bytes
            for count in 16..<whole.count {
                var cut = Array(whole.prefix(count))
                cut[2] = UInt8(count >> 8)
                cut[3] = UInt8(count & 0xff)
                let received = try #require(try read(cut).first)
                switch received {
                case .malformed(let command, _, let sequence, _):
                    #expect(command == pdu.command)
                    #expect(sequence == pdu.sequence)
                case .pdu(let read):
                    // Optional parameters may be missing, and the body of these PDUs has no information.
                    #expect(read.command == pdu.command)
                }
            }
        }
        // Every field of a bind is required.
        for count in 16..<example.count {
            var cut = Array(example.prefix(count))
            cut[3] = UInt8(count)
            guard case .malformed = try #require(try read(cut).first) else {
                Issue.record("\(count) bytes were taken for a bind")
                continue
            }
        }
    }

    @Test func impossibleLengthIsRefused() {
        for length in [0, 1, 15, 65_537, 0x7fff_ffff, 0xffff_ffff] as [UInt32] {
            var reader = PDUReader()
            reader.feed([24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> UInt32($0)) })
            #expect(throws: PDUReader.Lost(length: length)) { try reader.next() }
        }
    }

    @Test func oversizedFieldIsRefused() throws {
        let long = PDU(.submitResponse(messageID: String(repeating: "1", count: 65)), sequence: 1)
        guard case .malformed(_, .ok, 1, _) = try #require(try read(long.bytes).first) else {
            Issue.record("65 characters and a zero were taken")
            return
        }
        let longest = PDU(.submitResponse(messageID: String(repeating: "1", count: 64)), sequence: 1)
        #expect(try read(longest.bytes) == [.pdu(longest)])
    }

    /// Random input: the reader always ends in a valid state.
    @Test(arguments: [1, 2, 3, 4]) func randomBytesNeverCrashTheReader(seed: UInt64) {
        var chance = SeededRandomness(seed: seed)
        let samples = samples.map(\.bytes)
        for _ in 0..<3000 {
            var bytes = (samples.randomElement(using: &chance) ?? []) + (samples.randomElement(using: &chance) ?? [])
            for _ in 0..<Int.random(in: 0...6, using: &chance) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &chance)] = .random(in: 0...255, using: &chance)
            }
            if Bool.random(using: &chance) { bytes.removeLast(Int.random(in: 0...bytes.count, using: &chance)) }
            var reader = PDUReader()
            reader.feed(bytes)
            var count = 0
            while let received = try? reader.next() {
                count += 1
                if case .pdu(let pdu) = received { #expect(pdu.bytes.count <= PDUReader.longest) }
            }
            #expect(count <= bytes.count / 16)
        }
    }

    @Test func addressTypeFollowsFromItsForm() {
        #expect(SMPPAddress("+491701234567") == SMPPAddress(ton: 1, npi: 1, text: "491701234567"))
        #expect(SMPPAddress("12345") == SMPPAddress(ton: 3, npi: 0, text: "12345"))
        #expect(SMPPAddress("01701234567") == SMPPAddress(ton: 2, npi: 1, text: "01701234567"))
        #expect(SMPPAddress("Example-1 A") == SMPPAddress(ton: 5, npi: 0, text: "Example-1 A"))
        for text in ["", "+", "+49x", "twelve chars", "Äpfel", "a\0b", "+123456789012345678901", "１２３"] {
            #expect(SMPPAddress(text) == nil, "\(text)")
        }
    }

    @Test func statusesMapToMeanings() {
        let meanings: [(UInt32, SMPPStatus.Meaning)] = [
            (0, .accepted), (0x58, .slower), (0x14, .slower), (0x08, .later), (0x45, .later), (0x0b, .refused),
            (0x0a, .ours), (0x0e, .ours), (0x04, .later), (0x400, .ours), (0x1234_5678, .ours),
        ]
        for (code, meaning) in meanings { #expect(SMPPStatus(code).meaning == meaning, "\(SMPPStatus(code))") }
        #expect(SMPPStatus.throttled.description == "ESME_RTHROTTLED, throttled (0x58)")
        #expect(SMPPStatus(0x401).description == "vendor-specific status 0x401")
        #expect(SMPPStatus(0x99).description == "status 0x99")
    }
}
