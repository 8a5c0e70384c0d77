import Domain
import Testing

/// The unfinished steps of an enrolment.
@Suite struct EnrolmentStateTests {
    private func missing(
        _ ceremony: Ceremony, identity: Bool = false, proved: Bool = false, active: [Factor] = [],
        waiting: [Factor] = []
    ) -> [EnrolmentStep] {
        var policy = Policy()
        policy.enrolment = ceremony
        return EnrolmentState(
            isIdentityConfirmed: identity, isProved: proved, active: active, waiting: waiting
        ).missing(under: policy)
    }

    @Test(arguments: Ceremony.allCases) func stepsFollowTheCeremony(_ ceremony: Ceremony) {
        let identity: [EnrolmentStep] = ceremony == .confirmed ? [.identity] : []
        #expect(missing(ceremony) == identity + [.factor])
        #expect(missing(ceremony, proved: true) == identity)
        #expect(missing(ceremony, identity: true, proved: true) == [])
    }

    @Test func firstAddressesThatWaitAreMissing() {
        #expect(missing(.open, proved: true, waiting: [.sms, .mail]) == [.email, .phone])
        #expect(missing(.open, proved: true, active: [.mail], waiting: [.sms, .mail]) == [.phone])
        // New recovery codes are void until one was typed back, also beside older ones.
        #expect(missing(.open, proved: true, active: [.recovery], waiting: [.recovery]) == [.recovery])
        // A new app is no part of the enrolment.
        #expect(missing(.open, proved: true, waiting: [.totp]) == [])
    }
}
