import Bytes
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Authenticator apps. An app is active once its first code has proved that it has the secret.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct TOTPTests {
    private func person(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
    }

    @Test(arguments: StoreKind.all) func firstRightCodeActivatesTOTP(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let setup = try await ada.addTOTP()
        #expect(Base32.decode(setup.secret)?.count == 20)
        #expect(
            setup.uri == "otpauth://totp/The%20shop:ada?secret=\(setup.secret)&issuer=The%20shop"
                + "&algorithm=SHA1&digits=6&period=30")
        #expect(setup.expiresAt == ada.rig.time.now() + .seconds(600))
        #expect(try await ada.factors().map(\.state) == [.waiting])
        #expect(try await !ada.isProved)
        // The stored secret is sealed.
        let secret = try #require(Base32.decode(setup.secret))
        #expect(try ada.rig.count("SELECT count(*) FROM factor WHERE secret LIKE '%\(Hex.encode(secret))%'") == 0)
        #expect(try ada.rig.count("SELECT count(*) FROM factor WHERE sealed_by = '1' AND length(secret) > 20") == 1)

        let code = try ada.code(setup.secret)
        #expect(try await ada.confirm(code))
        let factor = try #require(try await ada.factors().first)
        #expect(factor.state == .active && factor.confirmedAt == ada.rig.time.now())
        // The code that confirmed it is used up.
        #expect(factor.counter == OTP.step(at: ada.rig.time.now(), period: 30))
        #expect(try await ada.isProved)
        #expect(await refusal { try await ada.confirm(code) } == .conflict([Self.nothing]))
        let audits = try ada.rig.count("SELECT count(*) FROM audit WHERE event = 'factor.bound' AND outcome = 'totp'")
        #expect(audits == 1)
    }

    private static let nothing = FieldFault(
        "totp", .state,
        LocalizedText(
            "has no factor that awaits or accepts this code",
            de: "hat keinen Faktor, der auf diesen Code wartet oder ihn annimmt"))

    @Test(arguments: [Int64(-1), 0, 1], [false, true])
    func oneStepOfDriftIsAccepted(steps: Int64, isFurther: Bool) async throws {
        let ada = try await person(.memory)
        let setup = try await ada.addTOTP()
        let drift = isFurther ? (steps < 0 ? steps - 1 : steps + 2) : steps
        #expect(try await ada.confirm(try ada.code(setup.secret, steps: drift)) == !isFurther)
    }

    @Test func everyAlgorithmDigitsAndPeriodIsReturned() async throws {
        let ada = try await person(.memory)
        let setup = try await ada.addTOTP(CodeShape(algorithm: .sha512, digits: 8, period: 60))
        #expect(setup.uri.hasSuffix("&algorithm=SHA512&digits=8&period=60"))
        let key = Secret(try #require(Base32.decode(setup.secret)))
        let step = UInt64(OTP.step(at: ada.rig.time.now(), period: 60))
        #expect(try await !ada.confirm(OTP.code(secret: key, counter: step, algorithm: .sha512, digits: 6)))
        ada.rig.time.advance(by: .seconds(5))
        let later = UInt64(OTP.step(at: ada.rig.time.now(), period: 60))
        #expect(try await ada.confirm(OTP.code(secret: key, counter: later, algorithm: .sha512, digits: 8)))
    }

    @Test func otpauthURINamesContainNoColon() {
        let uri = CodeShape().uri(secret: "ABC", issuer: "Shop: Ü & Co", account: "a:b@c")
        #expect(uri.hasPrefix("otpauth://totp/Shop%20%20%C3%9C%20%26%20Co:a%20b%40c?secret=ABC&"))
    }

    @Test(arguments: StoreKind.all) func previousTOTPStaysActiveUntilTheNextIsConfirmed(kind: StoreKind) async throws {
        let ada = try await person(kind, ["further-factors": "website"])
        let first = try await ada.withTOTP()
        let old = try #require(try await ada.factors().first?.id)
        ada.rig.time.advance(by: .seconds(60))
        let second = try await ada.addTOTP(code: try ada.code(first))
        #expect(try await ada.factors().map(\.state) == [.active, .waiting])
        #expect(try await ada.factors().first?.id == old)
        #expect(first != second.secret)
        #expect(try await ada.confirm(try ada.code(second.secret)))
        #expect(try await ada.factors().map(\.state) == [.active])
        #expect(try await ada.factors().first?.id != old)
    }

    @Test(arguments: StoreKind.all) func unconfirmedTOTPExpiresAfterTenMinutes(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let setup = try await ada.addTOTP()
        ada.rig.time.advance(by: .seconds(600))
        #expect(try await ada.factors().isEmpty)
        let code = try ada.code(setup.secret)
        #expect(await refusal { try await ada.confirm(code) } == .conflict([Self.nothing]))
    }

    @Test(arguments: StoreKind.all) func repeatedRequestReturnsTheSameSecret(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let operation = ada.rig.relay.operations.new(isRepeatable: true)
        let setup = try await ada.addTOTP(as: operation)
        let again = try await ada.addTOTP(as: ada.rig.relay.operations.again(operation.id))
        #expect(setup.secret == again.secret)
        let confirming = ada.rig.relay.operations.new()
        let code = try ada.code(setup.secret)
        #expect(try await !ada.confirm(ada.wrong(code), as: confirming))
        // The wrong code was counted, and its repetition is not counted again.
        #expect(try await !ada.confirm(ada.wrong(code), as: ada.rig.relay.operations.again(confirming.id)))
        #expect(try await ada.factors().first?.failures == 1)
        ada.rig.time.advance(by: .seconds(5))
        let right = ada.rig.relay.operations.new()
        #expect(try await ada.confirm(code, as: right))
        #expect(try await ada.confirm(code, as: ada.rig.relay.operations.again(right.id)))
    }

    @Test(arguments: StoreKind.all) func wrongConfirmationCodesDelayAndLock(kind: StoreKind) async throws {
        let ada = try await person(kind, ["guesses": "3"])
        let rig = ada.rig
        let setup = try await ada.addTOTP()
        for failures in 1...3 {
            let code = try ada.code(setup.secret)
            #expect(try await !ada.confirm(ada.wrong(code)))
            guard failures < 3 else { break }
            // No code is checked now, and nothing is counted.
            #expect(await refusal { try await ada.confirm(code) } == .limited(retryAfter: .seconds(5 * failures)))
            #expect(try await ada.factors().first?.failures == failures)
            rig.time.advance(by: .seconds(5 * failures))
        }
        let code = try ada.code(setup.secret)
        #expect(await refusal { try await ada.confirm(code) } == .codesLocked)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'codes.locked' AND proof = 'code'") == 1)
        // Neither a new secret nor the website alone unlocks codes.
        let other = try await ada.addTOTP()
        #expect(await refusal { try await ada.confirm(try ada.code(other.secret)) } == .codesLocked)
        guard case .approvalRequired = await refusal({ try await ada.unlock() }) else { throw RigFailure("unlocked") }
        try await ada.unlockByOperator()
        #expect(try await ada.factors().first?.failures == 0)
        #expect(try await ada.confirm(try ada.code(other.secret)))
    }

    /// A new secret does not end the delay.
    @Test(arguments: StoreKind.all) func replacedSecretKeepsItsFailures(kind: StoreKind) async throws {
        let ada = try await person(kind)
        #expect(try await !ada.confirm(ada.wrong(try ada.code(try await ada.addTOTP().secret))))
        let next = try await ada.addTOTP()
        let code = try ada.code(next.secret)
        #expect(await refusal { try await ada.confirm(code) } == .limited(retryAfter: .seconds(5)))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.confirm(try ada.code(next.secret)))
        #expect(try await ada.factors().first?.failures == 0)
    }

    @Test(arguments: StoreKind.all) func removingTOTPLeavesNothing(kind: StoreKind) async throws {
        let ada = try await person(kind, ["further-factors": "website"])
        let secret = try await ada.withTOTP()
        ada.rig.time.advance(by: .seconds(60))
        _ = try await ada.addTOTP(code: try ada.code(secret))
        try await ada.drop(.totp)
        try await ada.drop(.totp)
        #expect(try await ada.factors().isEmpty)
        #expect(try ada.rig.count("SELECT count(*) FROM audit WHERE event = 'factor.dropped'") == 1)
        // From now on every further factor needs the user's approval.
        #expect(try await ada.isProved)
    }

    // MARK: Concurrent requests

    @Test(arguments: StoreKind.all) func thirtyEqualConfirmationsCountOnce(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let code = try ada.code(try await ada.addTOTP().secret)
        let results = await atOnce(30) { try await ada.confirm(code) }
        #expect(results.filter { (try? $0.get()) == true }.count == 1)
        #expect(results.filter { ($0.refusal) == .conflict([Self.nothing]) }.count == 29)
        #expect(try await ada.factors().first?.failures == 0)
        #expect(try ada.rig.count("SELECT count(*) FROM audit WHERE event = 'factor.bound'") == 1)
    }

    @Test(arguments: StoreKind.all) func concurrentWrongConfirmationsAreCountedExactly(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let code = ada.wrong(try ada.code(try await ada.addTOTP().secret))
        let results = await atOnce(20) { try await ada.confirm(code) }
        // The first code counts, and the others arrive during the delay. A request that read
        // earlier reads again.
        #expect(results.filter { (try? $0.get()) == false }.count == 1)
        #expect(results.filter { $0.refusal == .limited(retryAfter: .seconds(5)) }.count == 19)
        #expect(try await ada.factors().first?.failures == 1)
    }

    @Test(arguments: StoreKind.all) func concurrentConfirmAndRemoveAreAtomic(kind: StoreKind) async throws {
        for _ in 0..<5 {
            let ada = try await person(kind)
            let code = try ada.code(try await ada.addTOTP().secret)
            async let confirmed = refusal { try await ada.confirm(code) }
            async let dropped = refusal { try await ada.drop(.totp) }
            let refusals = await [confirmed, dropped]
            #expect(refusals[1] == nil)
            let states = try await ada.factors().map(\.state)
            // In either order: the removal finds a waiting factor before the confirmation, or an
            // active one after it.
            #expect(states.isEmpty)
            #expect(refusals[0] == nil || refusals[0] == .conflict([Self.nothing]))
            #expect(try ada.rig.count("SELECT count(*) FROM audit WHERE event = 'factor.dropped'") == 1)
        }
    }

    private func atOnce<Value: Sendable>(
        _ count: Int, _ call: @escaping @Sendable () async throws -> Value
    ) async -> [Result<Value, any Error>] {
        await withTaskGroup(of: Result<Value, any Error>.self) { group in
            for _ in 0..<count {
                group.addTask { do { return .success(try await call()) } catch { return .failure(error) } }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    // MARK: Approval

    @Test(arguments: StoreKind.all) func userWithAPhoneMustApproveTOTP(kind: StoreKind) async throws {
        let ada = try await person(kind, ["number": "0"])
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        let first = await refusal { try await ada.addTOTP() }
        guard case .approvalRequired(let challenge, _) = first else { throw RigFailure("\(String(describing: first))") }
        #expect(await refusal { try await ada.addTOTP(approval: challenge) } == first)
        // An approval of another change is not accepted.
        let token = Secret(Array(repeating: 1, count: 20))
        try await ada.decide(challenge, .approve, by: phone)
        #expect(await refusal { try await ada.addHOTP(token, approval: challenge) } == Relay.noApproval)
        let refusals = await atOnce(4) { try await ada.addTOTP(approval: challenge) }
        #expect(refusals.filter { (try? $0.get()) != nil }.count == 1)
        #expect(refusals.filter { $0.refusal == Relay.noApproval }.count == 3)
        #expect(try ada.rig.count("SELECT count(*) FROM factor WHERE approval = x'\(challenge)'") == 1)

        // A factor that a phone approved ends with the phone.
        try await ada.rig.on { relay in try await relay.unbind(by: phone) }
        #expect(try await ada.factors().isEmpty)
    }
}

extension Result {
    fileprivate var refusal: Refusal? {
        if case .failure(let error) = self { error as? Refusal } else { nil }
    }
}
