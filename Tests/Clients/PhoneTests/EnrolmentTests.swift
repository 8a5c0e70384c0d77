import Bytes
import Crypto
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

struct EnrolmentTests {
    private let address = WebAddress(secure: true, host: "::1", port: 8443)

    @Test func enrolmentRoundTrips() throws {
        let relay = try FakeRelay()
        let now = Timestamp(milliseconds: 1_795_255_200_000)
        let begun = try Enrolment(
            try relay.activation(address, websiteKey: [UInt8](repeating: 9, count: 32)), pushToken: "abcd", name: "A",
            platform: .ios, environment: .sandbox, at: now)
        let bound = try relay.bound(address)
        for enrolment in [begun, bound] {
            let read = try Enrolment(try enrolment.json())
            #expect(try read.json() == enrolment.json())
            #expect(read.key.publicKey == enrolment.key.publicKey)
            #expect(read.audience == "https://[::1]:8443#shop")
            #expect(read.device == enrolment.device && read.certificate == enrolment.certificate)
        }
        let read = try Enrolment(try begun.json())
        guard case .asked("f91r8F9C", let key?) = read.state else {
            Issue.record("\(read.state)")
            return
        }
        #expect(key.reveal() == [UInt8](repeating: 9, count: 32))
        #expect(read.isFor(try relay.activation(address)))
        #expect(!read.isFor(try relay.activation(WebAddress(secure: true, host: "::1", port: 8444))))
        #expect(!bound.isFor(try relay.activation(address)))
        #expect(try bound.json()["activation_code"] == nil, "it is used up")
    }

    @Test(arguments: [
        ("v", JSONValue.integer(2)), ("relay", "http://a"), ("pin", "AA"), ("key", "none"), ("certificate", "none"),
        ("website", .null), ("made_at", "x"), ("platform", "phone"),
    ])
    func damagedEnrolmentIsRefused(name: String, value: JSONValue) throws {
        var object = try FakeRelay().bound(address).json()
        object[name] = value
        #expect(throws: Enrolment.Malformed.self) { try Enrolment(object) }
    }

    @Test func enrolmentWithAForeignCertificateIsRefused() throws {
        let relay = try FakeRelay()
        var object = try relay.bound(address).json()
        object["certificate"] = try relay.bound(address).json()["certificate"]
        #expect(throws: Enrolment.Malformed.self) { try Enrolment(object) }
    }
}
