import Bytes
import Crypto
import EventLoop
import SMPP
import Synchronization
import TLS
import TestSupport
import Testing
import World

/// The client on a separate loop, with the test gateway.
private final class Rig: Sendable {
    let smsc: FakeSMSC
    let client: SMPPClient
    private let group: LoopGroup

    init(
        _ script: FakeSMSC.Script = FakeSMSC.Script(), tls: TLSServerContext? = nil,
        options change: @Sendable (inout SMPPOptions) -> Void = { _ in }
    ) async throws {
        smsc = try await FakeSMSC.start(script, tls: tls)
        var options = SMPPOptions(
            host: "127.0.0.1", port: smsc.port, systemID: "relay", password: Secret(utf8: "secret08"))
        // The timeouts are long, so that only tests that shorten one can reach it.
        options.queueTimeout = .seconds(60)
        options.responseTimeout = .seconds(60)
        options.connectTimeout = .seconds(60)
        change(&options)
        group = try LoopGroup.start(count: 1, time: SystemTime())
        let heard = Heard()
        client = SMPPClient(options, loop: group.loops[0]) { heard.add($0) }
        self.heard = heard
    }

    let heard: Heard

    final class Heard: Sendable {
        private let receipts = Mutex<[SMPPReceipt]>([])

        func add(_ receipt: SMPPReceipt) { receipts.withLock { $0.append(receipt) } }
        var all: [SMPPReceipt] { receipts.withLock { $0 } }
    }

    func send(_ text: String = "Code 123456", to: String = "+491701234567", id: String = "a") async -> SMPPOutcome {
        await client.send(SMPPMessage(id: id, from: SMPPAddress("Shop"), to: to, text: text, validity: .seconds(300)))
    }

    /// Ends the client and the gateway. Answers keep the order of requests, so earlier answers have arrived by
    /// then.
    func close() async {
        await client.close()
        await smsc.stop()
        group.stopAndJoin()
    }
}

@Suite(.mayBlock, .timeLimit(.minutes(2))) struct SMPPClientTests {
    @Test func textsOfEveryKindAreSent() async throws {
        let rig = try await Rig { $0.systemType = "login" }
        let long = String(repeating: "Ein langer Text mit Umlauten äöü und €. ", count: 9)
        let texts = ["Code 123456", "Grüße [€]", "код 123456 😀", long, String(repeating: "я😀", count: 60)]
        for (number, text) in texts.enumerated() {
            guard case .accepted(let ids) = await rig.send(text, id: "\(number)") else {
                Issue.record("\(text) was not accepted")
                continue
            }
            #expect(ids.allSatisfy { $0.hasPrefix("m") })
        }
        let record = rig.smsc.record
        #expect(record.texts == texts)
        #expect(record.binds.map(\.systemID) == ["relay"])
        #expect(record.binds.map(\.systemType) == ["login"])
        #expect(record.submits.allSatisfy { $0.source == SMPPAddress(ton: 5, npi: 0, text: "Shop") })
        #expect(record.submits.allSatisfy { $0.destination == SMPPAddress(ton: 1, npi: 1, text: "491701234567") })
        #expect(record.submits.allSatisfy { $0.validity == "000000000500000R" })
        #expect(rig.client.fault == nil)
        await rig.close()
        #expect(rig.smsc.record.unbinds == 1)
    }

    @Test func sessionRunsInsideTLS() async throws {
        let certificates = try TestCertificates()
        let server = try TLSServerContext(
            certificateChainPEM: certificates.server.certificatePEM(), privateKeyPEM: certificates.server.keyPEM(),
            application: .unnamed)
        let believing = try TLSClientContext(
            roots: .pem(certificates.websites.certificatePEM()), application: .unnamed)
        let rig = try await Rig(tls: server) { $0.tls = believing }
        let long = String(repeating: "Sealed. ", count: 100)
        #expect(await rig.send(long) == .accepted((1...6).map { "m\($0)" }))
        #expect(rig.smsc.record.texts == [long])
        await rig.close()

        let doubting = try TLSClientContext(roots: .pem(certificates.phones.certificatePEM()), application: .unnamed)
        let other = try await Rig(tls: server) { $0.tls = doubting }
        guard case .undeliverable(let reason) = await other.send() else {
            Issue.record("sent to a gateway that nobody vouches for")
            return
        }
        #expect(reason.hasPrefix("TLS: "))
        #expect(other.smsc.record.binds.isEmpty)
        await other.close()
    }

    @Test func wrongPasswordIsReported() async throws {
        var script = FakeSMSC.Script()
        script.password = "another1"
        let rig = try await Rig(script)
        let reason = "the gateway refused the bind: ESME_RINVPASWD, wrong password (0xe)"
        #expect(await rig.send() == .undeliverable(reason))
        #expect(rig.client.fault == reason)
        // With the right password, the next attempt succeeds without any other action.
        rig.smsc.script.password = "secret08"
        await rig.smsc.until { $0.binds.count >= 2 }
        // No message is waiting, and the fault is cleared nevertheless.
        while rig.client.fault != nil { await Task.yield() }
        await rig.close()
    }

    @Test func unreachableGatewayIsUndeliverable() async throws {
        let rig = try await Rig { $0.port = 1 }
        guard case .undeliverable(let reason) = await rig.send() else {
            Issue.record("sent to nobody")
            return
        }
        #expect(reason.hasPrefix("cannot connect to 127.0.0.1:1: "))
        await rig.close()
        let nameless = try await Rig { $0.host = "gateway.invalid" }
        guard case .undeliverable(let reason) = await nameless.send() else {
            Issue.record("sent to nobody")
            return
        }
        #expect(reason.hasPrefix("cannot resolve gateway.invalid: "))
        await nameless.close()
    }

    @Test func throttledMessageIsRetried() async throws {
        var script = FakeSMSC.Script()
        script.answer = { $0.number == 1 ? .status(0x58) : .accept }
        let rig = try await Rig(script)
        #expect(await rig.send() == .accepted(["m2"]))
        #expect(rig.smsc.record.submits.map(\.text) == ["Code 123456", "Code 123456"])
        await rig.close()
    }

    @Test func connectionLostAfterSubmitIsAmbiguous() async throws {
        var script = FakeSMSC.Script()
        script.answer = { $0.number == 1 ? .cut : .accept }
        let rig = try await Rig(script)
        #expect(await rig.send() == .ambiguous("closed by the gateway"))
        // The message waits for the next session.
        #expect(await rig.send(id: "b") == .accepted(["m2"]))
        #expect(rig.smsc.record.connections == 2)
        await rig.close()
    }

    @Test func malformedAnswerEndsTheSession() async throws {
        var script = FakeSMSC.Script()
        script.answer = { $0.number == 1 ? .bytes(Array(repeating: 0xff, count: 40)) : .accept }
        let rig = try await Rig(script)
        #expect(await rig.send() == .ambiguous("the gateway sent a PDU of 4294967295 bytes"))
        #expect(await rig.send(id: "b") == .accepted(["m2"]))
        await rig.close()
    }

    @Test func hangingMessageDelaysNoOther() async throws {
        var script = FakeSMSC.Script()
        script.answer = { $0.text == "hangs" ? .silence : .accept }
        let rig = try await Rig(script) {
            $0.window = 3
            $0.responseTimeout = .seconds(3)
        }
        let hanging = Task { await rig.send("hangs", id: "hangs") }
        await rig.smsc.until { $0.submits.count == 1 }
        for number in 0..<50 {
            guard case .accepted = await rig.send("goes \(number)", id: "\(number)") else {
                Issue.record("\(number) was held up")
                break
            }
        }
        #expect(await hanging.value == .ambiguous("no answer in 3 s"))
        await rig.close()
    }

    @Test func submitWindowIsRespected() async throws {
        var script = FakeSMSC.Script()
        script.answer = { _ in .late(.milliseconds(5)) }
        let rig = try await Rig(script) { $0.window = 4 }
        let outcomes = await withTaskGroup(of: SMPPOutcome.self) { group in
            for number in 0..<100 { group.addTask { await rig.send("number \(number)", id: "\(number)") } }
            var outcomes: [SMPPOutcome] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        #expect(outcomes.allSatisfy { if case .accepted = $0 { true } else { false } })
        #expect(Set(rig.smsc.record.texts).count == 100)
        #expect(rig.smsc.record.mostUnanswered == 4)
        await rig.close()
    }

    @Test func duplicateReceiptIsReportedOnce() async throws {
        var script = FakeSMSC.Script()
        script.receipts = 2
        let rig = try await Rig(script)
        #expect(await rig.send(id: "first") == .accepted(["m1"]))
        // A receipt has the state that the script has when the receipt is sent.
        await rig.smsc.until { $0.receiptsAnswered == 2 }
        rig.smsc.script.state = "UNDELIV"
        #expect(await rig.send(id: "second") == .accepted(["m2"]))
        await rig.smsc.until { $0.receiptsAnswered == 4 }
        let heard = rig.heard.all
        #expect(heard.map(\.id) == ["first", "second"])
        #expect(heard.map(\.state) == [.delivered, .undeliverable])
        #expect(heard.map(\.error) == ["000", "027"])
        await rig.close()
    }

    @Test func transmitterRequestsNoReceipts() async throws {
        let rig = try await Rig { $0.mode = .transmitter }
        #expect(await rig.send() == .accepted(["m1"]))
        #expect(rig.smsc.record.binds.map(\.mode) == [.transmitter])
        #expect(rig.smsc.record.submits.map(\.wantsReceipt) == [false])
        await rig.close()
    }

    @Test func halfOpenConnectionIsDetected() async throws {
        var script = FakeSMSC.Script()
        script.answersEnquiries = false
        let rig = try await Rig(script) {
            $0.enquireInterval = .seconds(1)
            $0.responseTimeout = .seconds(1)
        }
        // The client sent an enquiry, got no answer, and connected again.
        await rig.smsc.until { $0.enquiries >= 1 && $0.connections >= 2 }
        rig.smsc.script.answersEnquiries = true
        await rig.close()
    }

    @Test func unbindByTheGatewayIsHandled() async throws {
        let rig = try await Rig()
        #expect(await rig.send(id: "a") == .accepted(["m1"]))
        await rig.smsc.unbind()
        await rig.smsc.until { $0.ends == 1 }
        #expect(await rig.send(id: "b") == .accepted(["m2"]))
        #expect(rig.smsc.record.connections == 2)
        await rig.close()
    }

    @Test func closeFailsWaitingMessages() async throws {
        var script = FakeSMSC.Script()
        script.answersBind = false
        let rig = try await Rig(script)
        let waiting = Task { await rig.send() }
        await rig.smsc.until { $0.binds.count == 1 }
        await rig.client.close()
        guard case .undeliverable = await waiting.value else {
            Issue.record("sent without a session")
            return
        }
        guard case .undeliverable = await rig.send() else {
            Issue.record("sent after the end")
            return
        }
        await rig.close()
    }

    @Test func invalidOptionsAreRefused() {
        var options = SMPPOptions(host: "gateway.test", port: 2775, systemID: "relay", password: Secret(utf8: "x"))
        #expect(options.fault == nil)
        options.systemID = ""
        #expect(options.fault == "system id must be 1 to 64 ASCII characters")
        options.systemID = "relay"
        options.window = 0
        #expect(options.fault == "window must be 1 to 1000")
        options.window = 1
        options.password = Secret(utf8: "pässwort")
        #expect(options.fault == "password must be at most 64 ASCII characters")
        options.password = Secret(utf8: "")
        options.enquireInterval = .milliseconds(10)
        #expect(options.fault == "enquire interval must be 1 second to 1 hour")
    }
}
