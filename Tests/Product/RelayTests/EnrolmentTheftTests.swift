import Crypto
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Relay

/// Theft at enrolment: a phone can only be bound with a valid code of this user at this website.
@Suite(.mayBlock) struct EnrolmentTheftTests {
    @Test(arguments: StoreKind.all) func activationCodeIsValidOnceForItsUser(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let bob = try await Person.registered("bob", at: ada.website, rig)
        let eve = try await Person.registered("eve", at: try await rig.shop("bank"), rig)
        let thief = try TestPhone(pushToken: "thief")
        var sender = 0
        func expectRefused(_ person: Person, _ phone: TestPhone, _ code: String) async {
            sender += 1
            #expect(await person.bind(phone, code, from: "198.51.100.\(sender)") == .failure(.unauthenticated))
        }
        // Another user's code, another website's code, and no code.
        await expectRefused(ada, thief, bob.code)
        await expectRefused(ada, thief, eve.code)
        await expectRefused(eve, thief, ada.code)
        await expectRefused(ada, thief, "")
        await expectRefused(ada, thief, ada.code + "A")
        // A proof for another website.
        let elsewhere = Person(rig: rig, website: eve.website, username: "ada", token: ada.token, code: ada.code)
        await expectRefused(elsewhere, thief, ada.code)
        // A used code.
        _ = try await ada.bound(try TestPhone(pushToken: "ada"), ada.code)
        await expectRefused(ada, thief, ada.code)
        // An expired code.
        rig.time.advance(by: .seconds(600))
        await expectRefused(bob, thief, bob.code)
        #expect(try rig.count("SELECT count(*) FROM device") == 1)
        // A code just before it expires.
        let code = try await bob.furtherCode()
        rig.time.advance(by: .seconds(599))
        #expect(await bob.bind(try TestPhone(pushToken: "bob"), code).bound != nil)
    }

    /// An old request, which may be found in a log. Its answer held the revocation code.
    @Test(arguments: StoreKind.all) func oldBindRequestIsRefused(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", ["number": "0"]), rig)
        let later = try await ada.furtherCode()
        let (first, second) = (try TestPhone(pushToken: "first"), try TestPhone(pushToken: "second"))
        rig.time.advance(by: .seconds(300))
        let bound = try #require(await ada.bind(first, ada.code).bound)
        rig.time.advance(by: .seconds(599))
        #expect(await ada.bind(first, ada.code).bound?.revocationCode == bound.revocationCode)
        rig.time.advance(by: .seconds(1))
        #expect(await ada.bind(first, ada.code) == .failure(.unauthenticated))
        #expect(try rig.devices(.active) == 1)
        // Counted from the approval, if one was required.
        try rig.execute("UPDATE activation SET expires_at = '2100-01-01 00:00:00.000' WHERE used_at IS NULL")
        let credential = try await ada.credential(first, bound.device)
        #expect(await ada.bind(second, later).isWaiting)
        await rig.settled()
        try await ada.decide(try ada.lastAsked(), .approve, by: credential)
        rig.time.advance(by: .seconds(3600))
        #expect(await ada.bind(second, later).bound != nil)
        rig.time.advance(by: .seconds(599))
        #expect(await ada.bind(second, later).bound != nil)
        rig.time.advance(by: .seconds(1))
        #expect(await ada.bind(second, later, from: "192.0.2.2") == .failure(.unauthenticated))
    }

    /// A phone that repeats its request early, at either of two relays.
    @Test(arguments: StoreKind.all) func concurrentBindRequestsBindOnePhone(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website(
            "shop", policies: ["answers": "certificate"], webhook: "https://shop.example/hook")
        let other = kind == .mariadb ? try await RelayRig(beside: rig) : rig
        for round in 0..<10 {
            let ada = try await Person.registered("ada-\(round)", at: shop, rig, email: "ada-\(round)@example.com")
            let phone = try TestPhone(pushToken: "push")
            let proof = try phone.proof(
                token: ada.token.text, code: ada.code, origin: RelayRig.origin, website: "shop", at: rig.time.now())
            let request = BindRequest(
                token: ada.token, pushToken: phone.pushToken, activationCode: ada.code, proof: proof, binding: nil,
                name: nil, platform: .ios, environment: .production)
            let bounds = try await withThrowingTaskGroup(of: Binding.self) { group in
                for number in 0..<6 {
                    let rig = number.isMultiple(of: 2) ? rig : other
                    group.addTask { try await rig.on { relay in try await relay.bind(request, from: "192.0.2.1") } }
                }
                return try await group.reduce(into: [Bound]()) { bounds, binding in
                    if case .bound(let bound) = binding { bounds.append(bound) }
                }
            }
            #expect(bounds.count == 6 && Set(bounds.map(\.revocationCode)).count == 1)
            #expect(try rig.count("SELECT count(*) FROM device") == Int64(round + 1))
        }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.bound'") == 10)
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE event = 'device.bound'") == 20)
    }

    @Test(arguments: StoreKind.all) func keyBelongsToOneUser(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let bob = try await Person.registered("bob", at: ada.website, rig)
        let eve = try await Person.registered("eve", at: try await rig.shop("bank"), rig)
        let phone = try TestPhone(pushToken: "push")
        let adas = try await ada.bound(phone, ada.code)
        for other in [bob, eve] {
            #expect(await other.bind(phone, other.code, from: other.username) == .failure(.unauthenticated))
            // Ada's phone is unchanged, and the code was not used up: a phone with another key is bound.
            #expect(try await ada.credential(phone, adas.id) == adas)
            #expect(await other.bind(try TestPhone(pushToken: "own"), other.code).bound != nil)
        }
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'push'") == 1)
    }

    @Test(arguments: StoreKind.all) func concurrentBindingOfOneKeyBindsOneUser(kind: StoreKind) async throws {
        for _ in 0..<20 {
            let rig = try await RelayRig(kind)
            let shop = try await rig.shop()
            let people = [
                try await Person.registered("ada", at: shop, rig), try await Person.registered("bob", at: shop, rig),
            ]
            let phone = try TestPhone(pushToken: "push")
            let binds = await withTaskGroup(of: Bind.self) { group in
                for person in people { group.addTask { await person.bind(phone, person.code) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(binds.filter { $0.bound != nil }.count == 1, "\(binds)")
            #expect(binds.contains(.failure(.unauthenticated)), "\(binds)")
            #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.bound'") == 1)
        }
    }

    @Test(arguments: StoreKind.all) func thousandGuessesBindNothing(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let thief = try TestPhone(pushToken: "thief")
        var limited = 0
        for number in 0..<1000 {
            let guess = "guess-\(number)-\(ada.code.suffix(8))"
            switch await ada.bind(thief, guess, from: "203.0.113.9").refusal {
            case .unauthenticated: break
            case .limited(let pause):
                limited += 1
                #expect(pause > .zero)
            case let other: Issue.record("\(String(describing: other))")
            }
            rig.time.advance(by: .milliseconds(100))
        }
        // In 100 seconds: five without delay, and then one more after 5, 10, 15, … seconds.
        #expect(limited == 1000 - 5 - 5)
        // Even the right code is refused before the delay is over.
        guard case .limited(let pause) = await ada.bind(thief, ada.code, from: "203.0.113.9").refusal else {
            Issue.record("it was looked up")
            return
        }
        // Another sender is not throttled.
        let bob = try await Person.registered("bob", at: ada.website, rig)
        #expect(await bob.bind(try TestPhone(pushToken: "bob"), bob.code, from: "203.0.113.10").bound != nil)
        // This is a delay and not a ban, because the address may be shared with honest users.
        rig.time.advance(by: pause)
        #expect(await ada.bind(try TestPhone(pushToken: "ada"), ada.code, from: "203.0.113.9").bound != nil)
    }

    /// A sender of many codes at once delays others at that address only briefly, and does not prevent the
    /// revocation of a lost phone.
    @Test(arguments: StoreKind.all) func burstOfGuessesIsThrottled(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let bob = try await Person.registered("bob", at: ada.website, rig)
        let bobs = try #require(await bob.bind(try TestPhone(pushToken: "bob"), bob.code).bound)
        let thief = try TestPhone(pushToken: "thief")
        let refusals = await withTaskGroup(of: Refusal?.self) { group in
            for number in 0..<60 {
                group.addTask { await ada.bind(thief, "guess-\(number)", from: "203.0.113.9").refusal }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(refusals.allSatisfy { $0 == .unauthenticated || $0 == .limited(retryAfter: .seconds(5)) })
        try await rig.on { relay in try await relay.revoke(code: bobs.revocationCode, from: "203.0.113.9") }
        #expect(try rig.devices(.revoked) == 1)
        #expect(
            await ada.bind(thief, ada.code, from: "203.0.113.9") == .failure(.limited(retryAfter: .seconds(5))))
        rig.time.advance(by: .seconds(5))
        #expect(await ada.bind(try TestPhone(pushToken: "ada"), ada.code, from: "203.0.113.9").bound != nil)
    }

    @Test(arguments: StoreKind.all) func unboundPhoneCannotBindItsKeyAgain(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered(
            "ada", at: try await rig.shop("shop", ["further-factors": "website"]), rig)
        let phone = try TestPhone(pushToken: "push")
        let lost = try await ada.bound(phone, ada.code)
        try await rig.on { relay in try await relay.unbind(by: lost) }
        // Neither its old code nor a new code binds the old key again.
        #expect(await ada.bind(phone, ada.code) == .failure(.unauthenticated))
        let code = try await ada.furtherCode()
        #expect(await ada.bind(phone, code) == .failure(.unauthenticated))
        #expect(await ada.bind(try TestPhone(pushToken: "new"), code).bound != nil)
        #expect(try rig.devices(.revoked) == 1)
    }

    @Test(arguments: StoreKind.all) func activationCodeDoesNotResumeASuspendedPhone(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered(
            "ada", at: try await rig.shop("shop", ["further-factors": "website"]), rig)
        let phone = try TestPhone(pushToken: "push")
        let device = try await ada.bound(phone, ada.code).id
        _ = try await rig.on { relay in
            try await relay.change(device, ofUser: "ada", name: nil, state: .suspended, by: ada.website)
        }
        let code = try await ada.furtherCode()
        for code in [ada.code, code] { #expect(await ada.bind(phone, code) == .failure(.unauthenticated)) }
        #expect(try rig.devices(.suspended) == 1)
    }
}
