import Bytes
import EventLoop
import SMPP
import Synchronization
import TestSupport
import Testing
import World

/// The client with third-party gateways.
@Suite(.mayBlock, .timeLimit(.minutes(2))) struct NetSMPPTests {
    @Test func netSMPPGatewayAcceptsMessages() async throws {
        let gateway = try PerlGateway.start()
        let line = try await gateway.line(.output, with: "port ")
        let port = try #require(UInt16(line.dropFirst(5)))
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        var options = SMPPOptions(
            host: "127.0.0.1", port: port, systemID: "relay", password: Secret(utf8: "secret08"))
        options.systemType = "login"
        options.queueTimeout = .seconds(60)
        options.responseTimeout = .seconds(60)
        options.enquireInterval = .seconds(1)
        let reported = Reports()
        let client = SMPPClient(options, loop: group.loops[0]) { reported.add($0) }
        func send(_ text: String, to number: String, id: String) async -> SMPPOutcome {
            let from = SMPPAddress("Shop")
            return await client.send(SMPPMessage(id: id, from: from, to: number, text: text, validity: .seconds(600)))
        }
        #expect(await send("Code [1] €", to: "+491701234567", id: "a") == .accepted(["perl-1"]))
        _ = try await gateway.line(.output, with: "alive 0")
        let refused = SMPPOutcome.refused("ESME_RINVDSTADR, invalid destination (0xb)")
        #expect(await send("x", to: "+491701234560", id: "b") == refused)
        #expect(await send("я", to: "12345", id: "c") == .accepted(["perl-3"]))
        let long = String(repeating: "a", count: 200)
        #expect(await send(long, to: "+491701234567", id: "d") == .accepted(["perl-4", "perl-5"]))
        _ = try await gateway.line(.output, with: "heard 0", number: 4)
        // The gateway has been silent for a second.
        _ = try await gateway.line(.output, with: "asked")
        await client.close()
        let ended = await gateway.ended()
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").filter { $0.hasPrefix("bind") || $0.hasPrefix("submit") }
        #expect(lines.count == 6)
        let to = "5 0 Shop 1 1 491701234567"
        #expect(lines.first == "bind relay secret08 login 34")
        // By 23.038: [ is 1B 3C, ] is 1B 3E, € is 1B 65.
        #expect(lines[1] == "submit \(to) 0 0 0 000000001000000R 1 0 436f6465201b3c311b3e201b65")
        #expect(lines[3] == "submit 5 0 Shop 3 0 12345 0 0 0 000000001000000R 1 8 044f")
        for (line, part) in zip(lines[4...], [("01", 153), ("02", 47)]) {
            #expect(line.hasPrefix("submit \(to) 64 0 0 000000001000000R 1 0 050003"))
            #expect(line.hasSuffix("02\(part.0)" + String(repeating: "61", count: part.1)))
        }
        #expect(reported.all.map(\.id) == ["a", "c", "d", "d"])
        #expect(reported.all.allSatisfy { $0.state == .delivered })
        group.stopAndJoin()
    }

    private final class Reports: Sendable {
        private let receipts = Mutex<[SMPPReceipt]>([])

        func add(_ receipt: SMPPReceipt) { receipts.withLock { $0.append(receipt) } }
        var all: [SMPPReceipt] { receipts.withLock { $0 } }
    }
}
