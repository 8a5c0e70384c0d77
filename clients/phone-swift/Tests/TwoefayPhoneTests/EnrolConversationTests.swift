import LinuxPhone
import Synchronization
import Testing
import TwoefayPhone

/// Enrolments with a real relay.
struct EnrolConversationTests {
    private let relay: RealRelay

    init() throws { relay = try RealRelay() }

    /// The URI of a website that draws the code itself has `k`: the relay passes the binding on,
    /// and never sees `k`.
    @Test func phoneIsBoundAndPinned() async throws {
        let shop = try relay.website()
        let reply = try shop.call("POST", "/register", ["username": "alice"])
        let uri = try #require(reply["activation"]?.object?["uri"]?.string)
        let k = [UInt8](0...31)
        let activation = try Activation("\(uri)&k=\(Base64URL.encode(k))")
        let app = App()
        var options = EnrolmentOptions()
        options.name = "Alice's"
        let phone = try Phone.begin(activation, options, app.parts)
        // The key is stored before the first request.
        #expect(app.storage.stored.count == 1)
        let code = try #require(try await phone.enrol())
        #expect(code.utf8.count == 20)
        let seen = try #require(try shop.phones().first)
        let device = await phone.enrolment.device
        #expect(seen["device"]?.string == device && seen["name"]?.string == "Alice's")
        #expect(seen["thumbprint"]?.string == phone.thumbprint)
        let binding = try #require(seen["binding"]?.string, "\(seen)")
        let signed = binding.split(separator: ".").prefix(2).joined(separator: ".")
        let mac = OpenSSLCryptography().hmac(.sha256, key: k, Array(signed.utf8))
        #expect(binding == "\(signed).\(Base64URL.encode(mac))")
        #expect(JWS(binding)?.claims["jwk"]?.object == phone.publicKey.jwk)
        // Code and k are deleted.
        let bytes = try #require(app.storage.stored.values.first)
        let stored = String(decoding: bytes, as: UTF8.self)
        #expect(!stored.contains(activation.code) && !stored.contains(Base64URL.encode(k)))
        let again = try await app.restarted(phone)
        let (early, late) = (await phone.enrolment, await again.enrolment)
        #expect(early == late)
        #expect(try await again.pending().isEmpty)
    }

    @Test func lostAnswerIsAskedForAgain() async throws {
        let shop = try relay.website()
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: ["POST /verify", "POST /verify"])
        let app = App(clock: clock, transport: lossy)
        let phone = try Phone.begin(try shop.register(), parts: app.parts)
        #expect(try await phone.enrol()?.utf8.count == 20)
        let bodies = lossy.sent.filter { $0.path == "/verify" }.map(\.body)
        #expect(bodies.count == 3 && Set(bodies.map { $0?.text }).count == 1)
        #expect(clock.slept == [2000, 4000])
        #expect(try shop.phones().count == 1)
    }

    /// The app was ended after its request, and its code is used up: the same key is the same
    /// phone.
    @Test func interruptedEnrolmentGoesOn() async throws {
        let shop = try relay.website()
        let clock = SetClock()
        let lossy = LossyTransport(CurlTransport(clock: clock), losing: ["POST /verify"], thenBreaks: true)
        let app = App(clock: clock, transport: lossy)
        let phone = try Phone.begin(try shop.register(), parts: app.parts)
        await #expect(throws: PhoneError.untrusted("broken")) { try await phone.enrol() }
        var later = app
        later.parts.transport = CurlTransport(clock: clock)
        let again = try await later.restarted(phone)
        #expect(try await again.enrol()?.utf8.count == 20)
        #expect(try shop.phones().count == 1)
    }

    /// The code is wrong from the relay's view, but the phone is bound: the answer was lost, and
    /// the website has made another code since.
    @Test func boundKeyIsFoundAfterARefusal() async throws {
        let shop = try relay.website()
        let app = App()
        let activation = try shop.register()
        let phone = try await app.enrol(activation)
        let device = await phone.enrolment.device
        // The state before the answer, with a code that is no longer right.
        let bytes = try #require(app.storage.stored.values.first)
        var stored = try #require(JSONReader.object(bytes))
        stored["device"] = nil
        stored["activation_code"] = "abcdefghijklmnopqrst"
        let early = try Phone(try Enrolment(stored: stored.bytes), app.parts)
        #expect(try await early.enrol() == nil)
        #expect(await early.enrolment.device == device)
    }

    @Test func usedCodeIsRefusedAndTheKeyRemoved() async throws {
        let shop = try relay.website()
        let activation = try shop.register()
        _ = try await App().enrol(activation)
        let thief = App()
        let phone = try Phone.begin(activation, parts: thief.parts)
        do throws(PhoneError) {
            _ = try await phone.enrol()
            Issue.record("bound")
        } catch {
            guard case .refused(let refusal) = error else { throw error }
            #expect(refusal.status == 401)
        }
        #expect(thief.storage.stored.isEmpty)
    }

    /// A second phone shows a number, and the first one approves it after comparing the key.
    @Test func firstPhoneApprovesTheSecond() async throws {
        let shop = try relay.website()
        let activation = try shop.register()
        let further = try shop.call("POST", "/user/alice/activation")
        let uri = try #require(further["uri"]?.string, "\(further)")
        let second = try Activation(uri)
        let first = try await App().enrol(activation)
        let app = App()
        let phone = try Phone.begin(second, parts: app.parts)
        let shown = Mutex<[Phone.Binding]>([])
        let code = try await phone.enrol { binding in
            let isFirst = shown.withLock { shown in
                shown.append(binding)
                return shown.count == 1
            }
            guard isFirst, case .waits(let number) = binding else { return }
            do {
                let challenge = try #require(try await first.pending().challenges.first)
                #expect(challenge.context.action == "enrol" && challenge.context.device != nil)
                #expect(challenge.context.details.contains { $0.label == "key" && $0.value == phone.thumbprint })
                #expect(try await first.answer(Answer(.approve(number: number)), to: challenge) == .success)
            } catch {
                Issue.record("\(error)")
            }
        }
        #expect(code?.utf8.count == 20 && shown.withLock { $0.count } == 1)
        #expect(try shop.phones().count == 2)
    }

    @Test func phoneWithoutAttestationIsRefused() async throws {
        let shop = try relay.website("--devices", "1", "--further-factors", "website")
        let app = App()
        _ = try await app.enrol(try shop.register())
        let further = try shop.call("POST", "/user/alice/activation")
        let uri = try #require(further["uri"]?.string, "\(further)")
        let second = try Phone.begin(try Activation(uri), parts: app.parts)
        // The user has as many phones as the website allows: the key stays for another attempt.
        await expectRefusal(409, "conflict") { try await second.enrol() }
        #expect(app.storage.stored.count == 2)
    }

    /// A server with another authority gets nothing.
    @Test func unpinnedRelayIsRefused() async throws {
        let shop = try relay.website()
        let right = try shop.register()
        let wrong = Base64URL.encode(right.pin.reversed())
        let uri =
            "twoefay://enrol?relay=\(right.relay.text)&website=\(right.website)&token=\(right.token)&code=\(right.code)&pin=\(wrong)"
        let app = App()
        let phone = try Phone.begin(try Activation(uri), parts: app.parts)
        do throws(PhoneError) {
            _ = try await phone.enrol()
            Issue.record("bound")
        } catch {
            guard case .untrusted = error else { throw error }
        }
        let bound = try await App().enrol(right)
        #expect(await bound.enrolment.device != nil)
    }
}

extension Phone {
    static func begin(_ activation: Activation, parts: PhoneParts) throws(PhoneError) -> Phone {
        try begin(activation, EnrolmentOptions(), parts)
    }
}

/// Expects a refusal with this status and code. Returns it.
@discardableResult func expectRefusal<Value>(
    _ status: Int, _ code: String, isolation: isolated (any Actor)? = #isolation,
    _ work: () async throws -> Value
) async -> Refusal? {
    do {
        _ = try await work()
        Issue.record("not refused")
    } catch PhoneError.refused(let refusal) {
        #expect(refusal.status == status && refusal.code == code, "\(refusal)")
        return refusal
    } catch {
        Issue.record("\(error)")
    }
    return nil
}
