import LinuxPhone
import Testing
import TwoefayPhone

/// The next authority of the real relay, which clients/phone-swift/test announces.
struct AuthorityConversationTests {
    @Test func phoneLearnsTheNextAuthority() async throws {
        let relay = try RealRelay()
        let shop = try relay.website()
        let app = App()
        let phone = try await app.enrol(try shop.register())
        let before = await phone.enrolment.pins
        _ = try await phone.pending()
        let enrolment = try await app.restarted(phone).enrolment
        #expect(before.count == 1)
        #expect(enrolment.pins.count == 2 && enrolment.pins.contains(before[0]) && enrolment.pinSequence > 0)
        // The statement counts once, and the relay does not send it again.
        _ = try await phone.pending()
        #expect(await phone.enrolment == enrolment)
    }
}
