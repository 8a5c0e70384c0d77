import SMPP
import TestSupport
import Testing

/// The test gateway with Kannel, a client that is used with real gateways.
@Suite(.mayBlock, .timeLimit(.minutes(2))) struct KannelTests {
    @Test func kannelDeliversThroughTheTestGateway() async throws {
        let smsc = try await FakeSMSC.start()
        let kannel = try await KannelSender(gateway: smsc.port)
        await smsc.until { $0.binds.count == 1 }
        let long = String(repeating: "Ein langer Text mit äöü. ", count: 12) + "Ende"
        let texts = ["Code 123456", "Grüße [€]", "код 123456", long]
        for text in texts {
            let answer = try await kannel.send(text, to: "+491701234567")
            #expect(answer.hasPrefix("0: Accepted for delivery"))
            // One message after the other, because only then the order is certain.
            await smsc.until { $0.texts.contains(text) }
        }
        // Kannel requests one receipt for each message, however many segments it has.
        let record = await smsc.until { $0.receiptsAnswered == texts.count && $0.enquiries > 0 }
        #expect(record.submits.count == 5)
        #expect(record.binds.map(\.mode) == [.transceiver])
        #expect(record.binds.map(\.systemID) == ["relay"])
        #expect(record.nacks == 0)
        #expect(record.submits.allSatisfy { $0.source == SMPPAddress(ton: 5, npi: 0, text: "Shop") })
        #expect(record.submits.allSatisfy { $0.destination == SMPPAddress(ton: 1, npi: 1, text: "491701234567") })
        await kannel.stop()
        await smsc.until { $0.ends == 1 }
        await smsc.stop()
    }
}
