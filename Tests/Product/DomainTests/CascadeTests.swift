import Domain
import Testing
import TestSupport
import World

@Suite struct CascadeTests {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let all = Cascade.AvailableFactors(phone: .pushable, codes: Set(Factor.codes))

    private func tried(_ steps: (Factor, StepState)...) -> [Cascade.CascadeStep] {
        steps.map { Cascade.CascadeStep(factor: $0.0, state: $0.1, at: Self.now) }
    }

    private func means(_ phone: Cascade.AvailableFactors.Phone?, _ codes: Factor...) -> Cascade.AvailableFactors {
        Cascade.AvailableFactors(phone: phone, codes: Set(codes))
    }

    @Test func firstAvailableFactorStarts() {
        let cascade = Cascade(factors: Factor.choices)
        #expect(cascade.first(Self.all) == .push)
        #expect(cascade.first(means(.asking, .totp)) == .pull)
        #expect(cascade.first(means(nil, .mail, .totp)) == .totp)
        #expect(cascade.first(means(nil, .mail)) == .mail)
        #expect(cascade.first(means(nil)) == nil)
        #expect(Cascade(factors: [.mail, .push]).first(Self.all) == .mail)
        #expect(Cascade(factors: [.totp]).first(means(.pushable)) == nil)
    }

    @Test func recoveryCodeIsAcceptedButNeverStarted() {
        let cascade = Cascade(factors: Factor.choices)
        #expect(cascade.first(means(nil, .recovery)) == nil)
        #expect(cascade.canAnswer(means(nil, .recovery)))
        #expect(!Cascade(factors: [.push, .totp]).canAnswer(means(nil, .recovery)))
        #expect(!cascade.canAnswer(means(nil)))
        #expect(cascade.next(after: tried((.push, .refused)), means(.pushable, .recovery)) == nil)
        #expect(cascade.start(.recovery, after: [], means(nil, .recovery), at: Self.now) == .begin(.recovery))
    }

    @Test func failedFactorIsFollowedByTheNext() {
        let cascade = Cascade(factors: Factor.choices)
        #expect(cascade.next(after: tried((.push, .refused)), Self.all) == .totp)
        #expect(cascade.next(after: tried((.push, .sent)), Self.all) == .totp)
        #expect(cascade.next(after: tried((.pull, .queued)), Self.all) == .totp)
        #expect(cascade.next(after: tried((.push, .expired), (.sms, .sent)), means(.pushable, .sms, .mail)) == .mail)
        #expect(cascade.next(after: tried((.push, .expired), (.sms, .sent)), means(.pushable, .sms)) == nil)
        // The quiet challenge has waited its time, and is not pushed later.
        #expect(cascade.next(after: tried((.pull, .expired)), means(.pushable)) == nil)
    }

    @Test func seenPushDelaysTheNextFactor() {
        let cascade = Cascade(factors: Factor.choices)
        #expect(cascade.next(after: tried((.push, .seen)), Self.all) == nil)
        // A push that was sent late was seen beside another step.
        #expect(cascade.next(after: tried((.push, .seen), (.totp, .sent)), Self.all) == nil)
        #expect(cascade.next(after: tried((.push, .expired), (.totp, .sent)), Self.all) == .hotp)
    }

    @Test func websiteStartsAllowedFactors() {
        let cascade = Cascade(factors: [.push, .totp, .sms])
        #expect(cascade.start(.mail, after: [], Self.all, at: Self.now) == .forbidden)
        #expect(cascade.start(.sms, after: [], means(.pushable), at: Self.now) == .unavailable)
        #expect(cascade.start(.sms, after: tried((.push, .seen)), Self.all, at: Self.now) == .begin(.sms))
        #expect(cascade.start(.push, after: [], means(.asking), at: Self.now) == .begin(.pull))
        #expect(cascade.start(.totp, after: tried((.totp, .sent)), Self.all, at: Self.now) == .underWay)
        #expect(cascade.start(.totp, after: tried((.totp, .expired)), Self.all, at: Self.now) == .begin(.totp))
    }

    @Test func resendingIsLimited() {
        let cascade = Cascade(factors: [.push, .totp, .sms, .mail])
        let once = tried((.sms, .sent))
        let soon = Self.now + .seconds(19)
        #expect(cascade.start(.sms, after: once, Self.all, at: soon) == .limited(until: Self.now + .seconds(20)))
        #expect(cascade.start(.mail, after: once, Self.all, at: soon) == .begin(.mail))
        #expect(cascade.start(.sms, after: once, Self.all, at: Self.now + .seconds(20)) == .begin(.sms))
        let five = Array(repeating: once[0], count: Cascade.mostSendings)
        let late = Self.now + .seconds(200)
        #expect(cascade.start(.mail, after: five, Self.all, at: late) == .limited(until: nil))
        #expect(cascade.start(.totp, after: five, Self.all, at: late) == .begin(.totp))
        let many = Array(repeating: tried((.totp, .expired))[0], count: Cascade.mostSteps)
        #expect(cascade.start(.totp, after: many, Self.all, at: late) == .limited(until: nil))
    }

    /// The automatic order of factors, for all policies, users and step states: each factor begins by itself at
    /// most once, none that is forbidden, and in the policy's order.
    @Test func automaticFactorsFollowThePolicy() {
        var chance = SeededRandomness(seed: 5)
        for _ in 0..<2000 {
            let factors = Factor.choices.shuffled(using: &chance).prefix(Int.random(in: 1...7, using: &chance))
            let phones: [Cascade.AvailableFactors.Phone?] = [nil, .asking, .pushable]
            let means = Cascade.AvailableFactors(
                phone: phones.randomElement(using: &chance) ?? nil,
                codes: Set(Factor.codes.filter { _ in Bool.random(using: &chance) }))
            let cascade = Cascade(factors: Array(factors))
            var steps: [Cascade.CascadeStep] = []
            var byItself: [Factor] = []
            while let next = cascade.next(after: steps, means) {
                byItself.append(next == .pull ? .push : next)
                let state = [StepState.sent, .refused, .undeliverable, .expired].randomElement(using: &chance) ?? .sent
                steps.append(Cascade.CascadeStep(factor: next, state: state, at: Self.now))
                guard byItself.count <= factors.count else { break }
                if Bool.random(using: &chance), let other = factors.randomElement(using: &chance),
                    case .begin(let factor) = cascade.start(other, after: steps, means, at: Self.now)
                {
                    steps.append(Cascade.CascadeStep(factor: factor, state: .sent, at: Self.now))
                }
            }
            #expect(Set(byItself).count == byItself.count)
            #expect(byItself.allSatisfy { $0.beginsByItself })
            #expect(byItself.allSatisfy { means.has($0) })
            let places = byItself.map { factors.firstIndex(of: $0) }
            #expect(places.allSatisfy { $0 != nil } && places.compactMap { $0 } == places.compactMap { $0 }.sorted())
            // None of the remaining factors could have begun.
            let left = factors.filter { factor in
                factor.beginsByItself && means.has(factor)
                    && !steps.contains { ($0.factor == .pull ? .push : $0.factor) == factor }
            }
            #expect(left.isEmpty)
        }
    }
}

@Suite struct NarrowedPolicyTests {
    @Test func requestedFactorsKeepThePolicyOrder() throws {
        var policy = Policy()
        try policy.set("factors", to: "totp, push, sms")
        #expect(policy.narrowed(to: [.sms, .push, .mail], atLeast: nil, asksNumber: true).factors == [.push, .sms])
        #expect(policy.narrowed(to: nil, atLeast: nil, asksNumber: true).factors == [.totp, .push, .sms])
        #expect(policy.narrowed(to: [.mail], atLeast: nil, asksNumber: true).factors.isEmpty)
    }

    @Test func factorsBelowMinAssuranceAreOmitted() throws {
        let policy = Policy()
        #expect(
            policy.narrowed(to: nil, atLeast: .restricted, asksNumber: false).factors
                == [.push, .totp, .hotp, .sms, .recovery])
        #expect(
            policy.narrowed(to: nil, atLeast: .substantial, asksNumber: false).factors
                == [.push, .totp, .hotp, .recovery])
        #expect(policy.narrowed(to: nil, atLeast: .high, asksNumber: true).factors == [.push])
        #expect(policy.narrowed(to: nil, atLeast: .high, asksNumber: false).factors.isEmpty)
        var sure = policy
        try sure.set("min-uv", to: "passcode")
        #expect(sure.narrowed(to: nil, atLeast: .high, asksNumber: false).factors == [.push])
        var recent = policy
        try recent.set("max-uv-age", to: "300")
        #expect(recent.narrowed(to: nil, atLeast: .high, asksNumber: false).factors == [.push])
        // The website's policy is the minimum, whatever a login requests.
        var strict = policy
        try strict.set("min-assurance", to: "substantial")
        let narrowed = strict.narrowed(to: nil, atLeast: .low, asksNumber: true)
        #expect(narrowed.minAssurance == .substantial && narrowed.factors == [.push, .totp, .hotp, .recovery])
    }

    @Test func onlyTheStrongestFactorApproves() {
        func approving(_ phone: Cascade.AvailableFactors.Phone?, _ codes: Factor...) -> [Factor] {
            Policy().strongest(
                of: Cascade.AvailableFactors(phone: phone, codes: Set(codes)), takesOperator: true
            ).factors
        }
        #expect(approving(.asking, .totp, .sms) == [.push, .recovery])
        #expect(approving(nil, .totp, .hotp, .mail) == [.totp, .hotp, .recovery])
        #expect(approving(nil, .sms, .mail) == [.sms, .recovery])
        #expect(approving(nil) == [.recovery])
    }

    @Test func wrongCodeIsFollowedByTheFirstFactorThatCanSendOne() {
        let now = Timestamp(milliseconds: 100_000)
        func resent(
            _ factors: [Factor], _ codes: Set<Factor>, after tried: [Cascade.CascadeStep] = []
        ) -> Factor? {
            Cascade(factors: factors).resend(
                after: tried, Cascade.AvailableFactors(phone: nil, codes: codes), at: now)
        }
        #expect(resent([.totp, .mail, .sms], [.totp, .sms, .mail]) == .mail)
        #expect(resent([.totp, .mail, .sms], [.totp, .sms]) == .sms)
        #expect(resent([.totp, .hotp], [.totp, .hotp, .sms]) == nil)
        let refused = Cascade.CascadeStep(factor: .sms, state: .refused, at: now)
        #expect(resent([.sms, .mail], [.sms, .mail], after: [refused]) == .mail)
        #expect(resent([.sms, .mail], [.sms, .mail], after: Array(repeating: refused, count: 5)) == nil)
    }

    /// Every later answer reads the challenge's stored policy again.
    @Test func policyWithoutUsableFactorsIsReadable() throws {
        var policy = Policy()
        try policy.set("factors", to: "push, mail")
        let strongest = policy.strongest(
            of: Cascade.AvailableFactors(phone: nil, codes: []), takesOperator: false)
        #expect(try Policy().changed(by: strongest.json) == strongest)
    }

    @Test func deadlineDependsOnTheFactor() throws {
        let now = Timestamp(milliseconds: 0)
        #expect(Policy().deadline(of: .push, from: now) == now + .seconds(30))
        #expect(Policy().deadline(of: .pull, from: now) == now + .seconds(30))
        #expect(Policy().deadline(of: .totp, from: now) == now + .seconds(90))
        var patient = Policy()
        try patient.set("code-deadline", to: "none")
        #expect(patient.deadline(of: .sms, from: now) == nil)
    }
}
