import Attestation
import Domain
import Relay
import Storage
import Synchronization
import TestSupport
import Testing

/// Two approvals of one phone at once: the other one stores its counter after this one was judged, and before this one
/// is written.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AttestationRaceTests {
    private struct Race {
        let shop: AttestedShop
        let bound: RelayRig.BoundPhone

        init(_ kind: StoreKind, _ requirement: String) async throws {
            // The last report of the phone, which this policy asks for, is read after the attestation.
            shop = try await AttestedShop(kind, ["attestation-ios": requirement, "verified-boot": "on"])
            bound = try await shop.bound(.ios)
        }

        /// Approves with an assertion of this counter. Meanwhile the other approval stores its own.
        func approve(_ counter: UInt32, meanwhile other: UInt32) async throws -> Result<ChallengeLife.Result, Refusal> {
            let (rig, credential) = (shop.rig, bound.credential)
            let asked = try await shop.ada.login()
            await rig.settled()
            let signed = try await rig.signed(.approve, asked.challenge, by: bound)
            let answer = PhoneAnswer(
                approves: true, signed: signed, assertion: try shop.assertion(counter)(signed))
            let isStored = Mutex(false)
            let store = try Store.watched(at: rig.url, rows: RelayRig.rowAuthenticator()) {
                (steps, session) throws(SessionFailure) in
                let isReport = steps.contains { $0.statement.sql.contains("FROM device_report r WHERE") }
                let isFirst = isStored.withLock { stored in
                    defer { stored = stored || isReport }
                    return isReport && !stored
                }
                if isFirst {
                    do {
                        try rig.execute("UPDATE attestation SET counter = \(other)")
                    } catch { throw .statement("the other approval failed: \(error)") }
                }
                return try session.run(steps)
            }
            defer { store.close() }
            let relay = try rig.relay(over: store)
            do {
                let result = try await rig.on { _ in
                    let phone = try await relay.device(credential.id, key: credential.key, isCertified: true)
                    return try await relay.answer(asked.challenge, answer, by: phone)
                }
                #expect(isStored.withLock { $0 })
                return .success(result)
            } catch let refusal as Refusal {
                return .failure(refusal)
            }
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func laterCounterIsJudgedAgain(kind: StoreKind) async throws {
        let race = try await Race(kind, "required")
        #expect(try await race.approve(6, meanwhile: 5) == .success(.success))
        #expect(try await race.shop.stored(race.bound)?.counter == 6)
    }

    /// The refusal names the assertion. The phone has entered no wrong number.
    @Test(arguments: [StoreKind.file, .mariadb]) func earlierCounterNeedsANewAssertion(kind: StoreKind) async throws {
        let race = try await Race(kind, "required")
        #expect(try await race.approve(3, meanwhile: 5) == .failure(.postureUnmet([.assertion])))
        #expect(try await race.shop.stored(race.bound)?.counter == 5)
        #expect(try await race.shop.answer(by: race.bound, assert: race.shop.assertion(6)) == .success(.success))
    }

    /// Under `recorded`, the earlier counter keeps nobody out, and does not count as an assertion.
    @Test(arguments: [StoreKind.file, .mariadb]) func earlierCounterIsRecorded(kind: StoreKind) async throws {
        let race = try await Race(kind, "recorded")
        #expect(try await race.approve(3, meanwhile: 5) == .success(.success))
        #expect(try await race.shop.stored(race.bound)?.counter == 5)
        #expect(try race.shop.rig.text("SELECT attested AS value FROM challenge").contains(#""asserted":false"#))
    }
}
