import Testing
import World

@testable import SMPP

/// The submit queue: the order of messages, and their outcomes.
@Suite struct SubmitTests {
    @Test func submitQueueRespectsTheWindow() throws {
        var bench = Bench { $0.window = 3 }
        bench.bind()
        for _ in 0..<8 { bench.submit() }
        var open = bench.takeSent()
        #expect(open.count == 3)
        var answered = 0
        while !open.isEmpty {
            let pdu = open.removeFirst()
            bench.accept(pdu, as: "m")
            answered += 1
            open += bench.takeSent()
            #expect(open.count == min(3, 8 - answered))
        }
        #expect(bench.settled.count == 8)
    }

    @Test func unansweredSubmitDelaysNoOther() throws {
        var bench = Bench { $0.window = 2 }
        bench.bind()
        let hanging = bench.submit()
        let first = try #require(bench.takeSent().first)
        for round in 0..<20 {
            let ticket = bench.submit()
            let pdu = try #require(bench.takeSent().first)
            bench.pass(.milliseconds(400))
            bench.accept(pdu, as: "m\(round)")
            #expect(bench.settled[ticket] == .accepted(["m\(round)"]))
        }
        #expect(bench.settled[hanging] == nil)
        bench.pass(.seconds(2))
        #expect(bench.settled[hanging] == .ambiguous("no answer in 10 s"))
        // A later answer matches no message.
        bench.accept(first, as: "late")
        #expect(bench.settled.count == 21)
        #expect(bench.session.phase == .bound)
    }

    @Test func throttledSubmitIsRetried() throws {
        var bench = Bench()
        bench.bind()
        let ticket = bench.submit()
        let first = try #require(bench.takeSent().first)
        bench.answer(.submitResponse(messageID: ""), to: first.sequence, .throttled)
        let other = bench.submit()
        #expect(bench.takeSent().isEmpty)
        bench.pass(.milliseconds(999))
        #expect(bench.takeSent().isEmpty)
        bench.pass(.milliseconds(1))
        let again = bench.takeSent()
        #expect(submits(again).count == 2)
        #expect(submits(again).first == submits([first]).first)
        bench.accept(again[0], as: "a")
        bench.accept(again[1], as: "b")
        #expect(bench.settled == [ticket: .accepted(["a"]), other: .accepted(["b"])])
    }

    @Test func throttledMessageExpires() throws {
        var bench = Bench()
        bench.bind()
        let ticket = bench.submit()
        var count = 0
        for _ in 0..<30 {
            for pdu in bench.takeSent() where pdu.command == PDU.Command.submit {
                count += 1
                bench.answer(.submitResponse(messageID: ""), to: pdu.sequence, .queueFull)
            }
            bench.pass(.milliseconds(500))
        }
        #expect(bench.settled[ticket] == .retry("queued for too long"))
        // At once, and then after 1, 2 and 4 more seconds.
        #expect(count == 4)
    }

    @Test func messageDeadlineOverridesTheDefault() throws {
        var bench = Bench { $0.window = 1 }
        bench.bind()
        let (first, second) = (bench.submit(within: .seconds(4)), bench.submit(within: .seconds(4)))
        bench.pass(.milliseconds(1999))
        #expect(bench.settled.isEmpty)
        // The queued message gets no slot in half of the time. The message that was sent at once has all of it.
        bench.pass(.milliseconds(1))
        #expect(bench.settled == [second: .retry("queued for too long")])
        bench.pass(.milliseconds(1999))
        #expect(bench.settled[first] == nil)
        bench.pass(.milliseconds(1))
        #expect(bench.settled[first] == .ambiguous("no answer in 4 s"))
    }

    @Test func submitResponsesMapToOutcomes() throws {
        let answers: [(SMPPStatus, SMPPOutcome)] = [
            (.wrongDestination, .refused("ESME_RINVDSTADR, invalid destination (0xb)")),
            (.systemError, .retry("ESME_RSYSERR, system error (0x8)")),
            (SMPPStatus(0x0a), .undeliverable("ESME_RINVSRCADR, invalid source address (0xa)")),
            (SMPPStatus(0x410), .undeliverable("vendor-specific status 0x410")),
        ]
        for (status, outcome) in answers {
            var bench = Bench()
            bench.bind()
            let ticket = bench.submit()
            bench.answer(.submitResponse(messageID: ""), to: try #require(bench.takeSent().first).sequence, status)
            #expect(bench.settled[ticket] == outcome)
        }
        var bench = Bench()
        bench.bind()
        let ticket = bench.submit()
        bench.answer(.genericNack, to: try #require(bench.takeSent().first).sequence, .wrongLength)
        #expect(bench.settled[ticket] == .undeliverable("ESME_RINVCMDLEN, invalid command length (0x2)"))
    }

    @Test func longTextIsAcceptedOnlyWithAllSegments() throws {
        var bench = Bench()
        bench.bind()
        let text = String(repeating: "abcdefghi ", count: 40)
        let ticket = bench.submit(text, id: "one")
        let parts = bench.takeSent()
        #expect(parts.count == 3)
        let bodies = submits(parts)
        #expect(bodies.allSatisfy { $0.esmClass == 0x40 && $0.text.count <= 159 })
        #expect(bodies.map { Array($0.text[..<3]) } == [[5, 0, 3], [5, 0, 3], [5, 0, 3]])
        #expect(bodies.map { Array($0.text[4..<6]) } == [[3, 1], [3, 2], [3, 3]])
        #expect(Set(bodies.map { $0.text[3] }).count == 1)
        #expect(bodies.flatMap { $0.text[6...] } == Array(text.utf8))
        bench.accept(parts[2], as: "c")
        bench.accept(parts[0], as: "a")
        #expect(bench.settled.isEmpty)
        bench.accept(parts[1], as: "b")
        #expect(bench.settled[ticket] == .accepted(["a", "b", "c"]))
        // A repetition under the same id is the same message for the phone.
        bench.submit(text, id: "one")
        #expect(submits(bench.takeSent()) == bodies)
        bench.submit(text, id: "two")
        #expect(submits(bench.takeSent()) != bodies)
    }

    @Test func worstSegmentDecidesTheOutcome() throws {
        func outcome(_ statuses: [SMPPStatus?]) throws -> SMPPOutcome? {
            var bench = Bench()
            bench.bind()
            let ticket = bench.submit(String(repeating: "a", count: 300))
            for (pdu, status) in zip(bench.takeSent(), statuses) {
                guard let status else { continue }
                bench.answer(.submitResponse(messageID: "m"), to: pdu.sequence, status)
            }
            bench.lose("gone")
            return bench.settled[ticket]
        }
        #expect(try outcome([.ok, .systemError]) == .retry("ESME_RSYSERR, system error (0x8)"))
        #expect(try outcome([.wrongDestination, .ok]) == .refused("ESME_RINVDSTADR, invalid destination (0xb)"))
        #expect(try outcome([.ok, nil]) == .ambiguous("gone"))
        #expect(try outcome([nil, .systemError]) == .retry("ESME_RSYSERR, system error (0x8)"))
        #expect(try outcome([.ok, .ok]) == .accepted(["m", "m"]))
    }

    @Test func throughputLimitIsRespected() {
        var bench = Bench {
            $0.throughput = 4
            $0.window = 100
        }
        bench.bind()
        for _ in 0..<9 { bench.submit() }
        #expect(submits(bench.takeSent()).count == 1)
        bench.pass(.seconds(1))
        #expect(submits(bench.takeSent()).count == 4)
        bench.pass(.milliseconds(750))
        #expect(submits(bench.takeSent()).count == 3)
        bench.pass(.milliseconds(250))
        #expect(submits(bench.takeSent()).count == 1)
    }

    @Test func unsendableMessageIsRefused() {
        var bench = Bench {
            $0.queue = 1
            $0.maxParts = 2
        }
        bench.bind()
        bench.submit(String(repeating: "a", count: 307))
        var message = SMPPMessage(id: "x", to: "Shop", text: "hi")
        bench.session.submit(message, as: 1000, bench.now)
        message.to = "+49"
        bench.session.submit(message, as: 1001, bench.now)
        bench.session.submit(message, as: 1002, bench.now)
        bench.look()
        #expect(bench.settled[1] == .undeliverable("the text has 3 SMS segments, the limit is 2"))
        #expect(bench.settled[1000] == .refused("the recipient is not a telephone number"))
        #expect(bench.settled[1001] == nil)
        #expect(bench.settled[1002] == .retry("1 messages are already queued"))
    }

    /// The parameters of SMPP 3.4 §5.3.2.22 to 24.
    @Test func longTextUsesSARParameters() throws {
        var bench = Bench { $0.longTexts = .sar }
        bench.bind()
        let text = String(repeating: "abc", count: 100)
        bench.submit(text, id: "one")
        let bodies = submits(bench.takeSent())
        #expect(bodies.count == 2 && bodies.allSatisfy { $0.esmClass == 0 && $0.text.count <= 153 })
        #expect(bodies.flatMap(\.text) == Array(text.utf8))
        #expect(
            bodies.map { $0.parameter(0x020e) } == [[2], [2]] && bodies.map { $0.parameter(0x020f) } == [[1], [2]])
        let references = bodies.map { $0.parameter(0x020c) }
        #expect(references[0] == references[1] && references[0]?.count == 2)
        // The reference is the same at each repetition of a message, and differs between messages.
        bench.submit(text, id: "one")
        #expect(submits(bench.takeSent()).first?.parameter(0x020c) == references[0])
        bench.submit(text, id: "two")
        #expect(submits(bench.takeSent()).first?.parameter(0x020c) != references[0])
    }

    @Test func longTextUsesMessagePayload() throws {
        var bench = Bench { $0.longTexts = .payload }
        bench.bind()
        let text = String(repeating: "ü", count: 200)
        let ticket = bench.submit(text)
        let sent = bench.takeSent()
        let body = try #require(submits(sent).first)
        #expect(sent.count == 1 && body.text.isEmpty && body.esmClass == 0)
        // One octet for each character of the GSM alphabet, in which ü is 0x7e.
        #expect(body.parameter(0x0424) == Array(repeating: 0x7e, count: 200))
        bench.accept(sent[0], as: "m")
        #expect(bench.settled[ticket] == .accepted(["m"]))
        bench.submit("short")
        #expect(submits(bench.takeSent()).first?.text == Array("short".utf8))
    }

    @Test func numberTypeFollowsTheOptions() throws {
        var bench = Bench {
            $0.source = SMPPAddress("Shop")?.typed(SMPPNumberKind(npi: 1))
            $0.destinationKind = SMPPNumberKind(ton: 2)
        }
        bench.bind()
        bench.submit()
        let body = try #require(submits(bench.takeSent()).first)
        #expect(body.source == SMPPAddress(ton: 5, npi: 1, text: "Shop"))
        #expect(body.destination == SMPPAddress(ton: 2, npi: 1, text: "491701234567"))
    }
}
