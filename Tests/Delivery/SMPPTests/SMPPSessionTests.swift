import Bytes
import Testing
import World

@testable import SMPP

@Suite struct SMPPSessionTests {
    @Test func sessionBindsAndSubmits() throws {
        var bench = Bench {
            $0.source = SMPPAddress("Shop")
            $0.systemType = "login"
        }
        #expect(bench.connects == 1)
        let ticket = bench.submit()
        bench.connect()
        let bind = try #require(bench.takeSent().first)
        #expect(
            bind.body
                == .bind(
                    .transceiver,
                    PDU.Bind(systemID: "relay", password: Secret(utf8: "secret08"), systemType: "login", version: 0x34))
        )
        bench.answer(.bindResponse(.transceiver, systemID: "gw"), to: bind.sequence)
        let submit = try #require(bench.takeSent().first)
        let message = try #require(submits([submit]).first)
        #expect(message.source == SMPPAddress(ton: 5, npi: 0, text: "Shop"))
        #expect(message.destination == SMPPAddress(ton: 1, npi: 1, text: "491701234567"))
        #expect(message.text == Array("Code 123456".utf8))
        #expect(message.dataCoding == 0)
        #expect(message.registeredDelivery == 1)
        #expect(bench.settled.isEmpty)
        bench.accept(submit, as: "abc")
        #expect(bench.settled == [ticket: .accepted(["abc"])])
        #expect(bench.session.fault == nil)
    }

    @Test func refusedBindBacksOff() throws {
        var bench = Bench()
        let waiting = bench.submit()
        bench.connect()
        let bind = try #require(bench.takeSent().first)
        bench.answer(.bindResponse(.transceiver, systemID: ""), to: bind.sequence, .wrongPassword)
        let reason = "the gateway refused the bind: ESME_RINVPASWD, wrong password (0xe)"
        #expect(bench.settled[waiting] == .undeliverable(reason))
        #expect(bench.session.fault == reason)
        #expect(bench.disconnects == 1)
        // A new message does not wait for the next attempt.
        let late = bench.submit()
        #expect(bench.settled[late] == .undeliverable(reason))
        // The session reconnects after one to one and a half seconds.
        bench.pass(.milliseconds(999))
        #expect(bench.connects == 1)
        bench.pass(.milliseconds(501))
        #expect(bench.connects == 2)
        bench.bind()
        #expect(bench.session.fault == nil)
    }

    @Test func unansweredBindTimesOut() {
        var bench = Bench()
        let ticket = bench.submit()
        bench.connect()
        bench.pass(.seconds(10))
        #expect(bench.settled[ticket] == .undeliverable("no answer to the bind"))
        #expect(bench.disconnects == 1)
    }

    @Test func reconnectBackOffGrowsToAMinute() {
        var bench = Bench()
        var pauses: [Duration] = []
        for _ in 0..<12 {
            let failed = bench.now
            bench.lose("refused")
            let next = bench.session.nextDeadline ?? bench.now
            pauses.append(next - failed)
            bench.pass(next - failed)
        }
        for (pause, base) in zip(pauses, [1, 2, 4, 8, 16, 32, 40, 40, 40, 40, 40, 40]) {
            #expect(pause >= .seconds(base) && pause <= .seconds(base) * 3 / 2, "\(pause)")
        }
        #expect(bench.connects == 13)
    }

    @Test func sessionLostAfterSubmitIsAmbiguous() throws {
        var bench = Bench { $0.window = 1 }
        bench.bind()
        let sent = bench.submit()
        let waiting = bench.submit()
        bench.lose()
        #expect(bench.settled == [sent: .ambiguous("connection reset")])
        #expect(bench.session.fault == "connection reset")
        // A session that was bound may be bound again soon, so the other messages wait.
        let late = bench.submit()
        bench.pass(.milliseconds(1500))
        #expect(bench.connects == 2)
        _ = bench.takeSent()
        bench.bind()
        for _ in 0..<2 { bench.accept(try #require(bench.takeSent().first), as: "m") }
        #expect(bench.settled[waiting] == .accepted(["m"]))
        #expect(bench.settled[late] == .accepted(["m"]))
    }

    @Test func halfOpenConnectionIsDetected() throws {
        var bench = Bench()
        bench.bind()
        bench.pass(.milliseconds(29_999))
        #expect(bench.takeSent().isEmpty)
        bench.pass(.milliseconds(1))
        let enquiry = try #require(bench.takeSent().first)
        #expect(enquiry.body == .enquireLink)
        bench.answer(.enquireLinkResponse, to: enquiry.sequence)
        bench.pass(.seconds(30))
        #expect(bench.takeSent().map(\.body) == [.enquireLink])
        bench.pass(.milliseconds(9999))
        #expect(bench.disconnects == 0)
        bench.pass(.milliseconds(1))
        #expect(bench.disconnects == 1)
        #expect(bench.session.fault == "no answer to the enquire_link")
        bench.pass(.milliseconds(1500))
        #expect(bench.connects == 2)
    }

    @Test func receiptIsReportedOnceAndAlwaysAcknowledged() throws {
        var bench = Bench()
        bench.bind()
        bench.submit(id: "ours")
        bench.accept(try #require(bench.takeSent().first), as: "abc")
        var receipt = ShortMessage()
        receipt.esmClass = 4
        receipt.text = Array("id:abc stat:UNDELIV err:027".utf8)
        for sequence in [7, 8] as [UInt32] { bench.answer(.deliver(receipt), to: sequence) }
        #expect(bench.takeSent() == [PDU(.deliverResponse, sequence: 7), PDU(.deliverResponse, sequence: 8)])
        #expect(bench.receipts.count == 1)
        #expect(bench.receipts.first?.id == "ours")
        #expect(bench.receipts.first?.state == .undeliverable)
        #expect(bench.receipts.first?.error == "027")
        // A text that a person sends to the relay is acknowledged and ignored.
        var text = ShortMessage()
        text.text = Array("STOP".utf8)
        bench.answer(.deliver(text), to: 9)
        #expect(bench.takeSent() == [PDU(.deliverResponse, sequence: 9)])
        #expect(bench.receipts.count == 1)
    }

    @Test func dataSMReceiptIsAccepted() throws {
        var bench = Bench()
        var receipt = ShortMessage()
        receipt.esmClass = 4
        receipt.parameters = [
            Parameter(Parameter.receiptedMessageID, Array("abc\0".utf8)), Parameter(Parameter.messageState, [2]),
        ]
        bench.connect()
        let bind = try #require(bench.takeSent().first)
        bench.answer(.data(receipt), to: 4)
        #expect(bench.takeSent() == [PDU(.dataResponse, sequence: 4, status: .notBound)] && bench.receipts.isEmpty)
        bench.answer(.bindResponse(.transceiver, systemID: "gw"), to: bind.sequence)
        bench.submit(id: "ours")
        bench.accept(try #require(bench.takeSent().first), as: "abc")
        for sequence in [7, 8] as [UInt32] { bench.answer(.data(receipt), to: sequence) }
        #expect(bench.takeSent() == [PDU(.dataResponse, sequence: 7), PDU(.dataResponse, sequence: 8)])
        #expect(bench.receipts.map(\.id) == ["ours"] && bench.receipts.first?.state == .delivered)
    }

    /// The gateway treats the relay as a server, or reports that a phone is reachable again.
    @Test func outbindAndAlertAreNotAnswered() throws {
        var bench = Bench()
        bench.connect()
        let bind = try #require(bench.takeSent().first)
        bench.answer(.other(PDU.Command.outbind), to: 1)
        bench.answer(.bindResponse(.transceiver, systemID: "gw"), to: bind.sequence)
        for command in [PDU.Command.outbind, PDU.Command.alertNotification] { bench.answer(.other(command), to: 2) }
        #expect(bench.takeSent().isEmpty && bench.session.phase == .bound && bench.disconnects == 0)
    }

    @Test func gatewayRequestsAreAnswered() throws {
        var bench = Bench()
        bench.bind()
        bench.answer(.enquireLink, to: 5)
        bench.answer(.submit(ShortMessage()), to: 6)
        bench.answer(.other(0x03), to: 7)
        bench.answer(.other(0x102), to: 8)
        bench.answer(.other(0x8000_0103), to: 9)
        #expect(
            bench.takeSent() == [
                PDU(.enquireLinkResponse, sequence: 5), PDU(.genericNack, sequence: 6, status: .wrongCommand),
                PDU(.genericNack, sequence: 7, status: .wrongCommand),
            ])
        bench.answer(.unbind, to: 10)
        #expect(bench.takeSent() == [PDU(.unbindResponse, sequence: 10)])
        #expect(bench.disconnects == 1)
        #expect(bench.session.fault == "the gateway ended the session")
    }

    @Test func malformedPDUEndsTheSession() throws {
        var bench = Bench()
        bench.bind()
        let ticket = bench.submit()
        bench.session.received(Array("HTTP/1.1 400 Bad Request\r\n".utf8), bench.now)
        bench.look()
        #expect(bench.disconnects == 1)
        #expect(bench.settled[ticket] == .ambiguous("the gateway sent a PDU of 1213486160 bytes"))
        // The session continues on another connection.
        bench.pass(.milliseconds(1500))
        _ = bench.takeSent()
        bench.bind()
    }

    @Test func sessionUnbindsInOrder() throws {
        var bench = Bench { $0.window = 1 }
        bench.bind()
        let first = bench.submit()
        let waiting = bench.submit()
        bench.session.close(bench.now)
        bench.look()
        #expect(bench.settled == [waiting: .undeliverable("the connection to the gateway was closed")])
        let late = bench.submit()
        #expect(bench.settled[late] == .undeliverable("the connection to the gateway is being closed"))
        let submit = try #require(bench.takeSent().first)
        bench.accept(submit, as: "m")
        #expect(bench.settled[first] == .accepted(["m"]))
        let unbind = try #require(bench.takeSent().first)
        #expect(unbind.body == .unbind)
        #expect(!bench.isClosed)
        bench.answer(.unbindResponse, to: unbind.sequence)
        #expect(bench.isClosed)
        #expect(bench.disconnects == 1)
        #expect(bench.session.nextDeadline == nil)
    }

    @Test func unansweredUnbindTimesOut() {
        var bench = Bench()
        bench.bind()
        bench.session.close(bench.now)
        bench.look()
        bench.pass(.seconds(10))
        #expect(bench.isClosed)
        var early = Bench()
        early.session.close(early.now)
        early.look()
        #expect(early.isClosed)
    }
}
