import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import Phone

/// The place of the phone, from `twoefay phone` to the result of the website.
@Suite(.timeLimit(.minutes(15))) struct PhonePlaceTests {
    @Test(arguments: [
        (52.5163, 13.3777, "52.5,13.4"), (-0.04, -0.06, "0.0,-0.1"), (90, -180, "90.0,-180.0"),
        (1.25, 9.96, "1.3,10.0"),
    ])
    func placeIsRounded(latitude: Double, longitude: Double, text: String) {
        #expect(PhonePlace(latitude: latitude, longitude: longitude)?.text == text)
    }

    @Test func impossiblePlaceIsRefused() {
        for (latitude, longitude) in [(90.1, 0), (0, 180.1), (.nan, 0), (0, .infinity)] as [(Double, Double)] {
            #expect(PhonePlace(latitude: latitude, longitude: longitude) == nil)
        }
    }

    private struct Scene {
        let relay: RunningRelay
        let shop: CurlCaller
        let owner: Owner
        let directory: TemporaryDirectory

        /// Starts a relay that knows where 192.0.2.0/24 is, and enrols a phone.
        init(_ kind: StoreKind, _ use: String = "ignore", distance: Int = 500) async throws {
            let directory = try TemporaryDirectory()
            self.directory = directory
            var file = MaxMindFile()
            file.add("192.0.2.0/24", .place(city: "Equator", latitude: 0, longitude: 0, radius: .number16(100)))
            try file.write(to: directory("places.mmdb"))
            relay = try await RunningRelay.start(kind) { try $0.set("geo.database", to: directory("places.mmdb")) }
            shop = try await relay.website("shop", "--phone-place", use, "--phone-place-distance", "\(distance)")
            owner = try Owner()
            let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
            let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            let enrolled = try await owner.phone("enrol", uri)
            try #require(enrolled.status == 0, "\(enrolled.errors)")
        }

        func login(_ ip: String? = "192.0.2.7") async throws -> (challenge: String, number: String) {
            var body: JSONObject = ["username": "alice"]
            if let ip { body.set("ip", .string(ip)) }
            let asked = try await shop.curl("POST", "/login", json: JSONWriter.text(.object(body)))
            return (
                try #require(asked["challenge"]?.string, "\(asked)"), try #require(asked["number"]?.string, "\(asked)")
            )
        }

        /// Answers a login, and returns the exit status of the phone and the result.
        func answer(
            _ word: String, place: String?, ip: String? = "192.0.2.7"
        ) async throws -> (status: Int32, result: CurlCaller.Answer) {
            let (challenge, number) = try await login(ip)
            var arguments = [word, "--challenge", challenge, "--keys", owner.keys]
            if word == "approve" { arguments += ["--number", number] }
            if let place { arguments += ["--place", place] }
            let ended = try await owner.begin(arguments).ended()
            return (
                ended.status, try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
            )
        }
    }

    private func claims(_ result: CurlCaller.Answer) throws -> JSONObject {
        let receipt = try #require(result["receipt"]?.string, "\(result)")
        return try #require(try JSONReader.read(try JWS.parse(receipt).payload).object)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func approvalFromFarAwayIsRefused(kind: StoreKind) async throws {
        let scene = try await Scene(kind, "refuse")
        let near = try await scene.answer("approve", place: "0.72,-0.31")
        #expect(near.status == 0 && near.result["login"] == "success", "\(near)")
        #expect(near.result["phone_place"] == ["check": "near", "distance": 0])
        #expect(try claims(near.result)["place"] == "0.7,-0.3")

        // Ten degrees of the equator are 1111 km.
        let far = try await scene.answer("approve", place: "0,10")
        #expect(far.status == 1 && far.result["login"] == "failure", "\(far)")
        #expect(far.result["reason"] == "place" && far.result["proof"] == "signed")
        #expect(far.result["phone_place"] == ["check": "far", "distance": 1003])

        // A place is optional, and an address without a place says nothing.
        let silent = try await scene.answer("approve", place: nil)
        #expect(silent.result["login"] == "success" && silent.result["phone_place"] == ["check": "unknown"])
        let elsewhere = try await scene.answer("approve", place: "0,10", ip: "198.51.100.7")
        #expect(elsewhere.result["login"] == "success" && elsewhere.result["phone_place"] == ["check": "unknown"])
        let unaddressed = try await scene.answer("approve", place: "0,10", ip: nil)
        #expect(unaddressed.result["login"] == "success")
        #expect(unaddressed.result["phone_place"] == ["check": "unknown"])

        let denied = try await scene.answer("deny", place: "0,10")
        #expect(denied.result["reason"] == "denied" && denied.result["phone_place"]?.object?["check"] == "far")
        // A refused approval is no wrong number: the user is not locked.
        #expect(try await scene.answer("approve", place: "0,0").result["login"] == "success")
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func farPlaceIsOnlyShownIfThePolicySaysSo(kind: StoreKind) async throws
    {
        let scene = try await Scene(kind, "flag", distance: 1500)
        let near = try await scene.answer("approve", place: "0,10")
        #expect(near.result["phone_place"] == ["check": "near", "distance": 1003])
        let far = try await scene.answer("approve", place: "0,20")
        #expect(far.status == 0 && far.result["login"] == "success", "\(far)")
        #expect(far.result["phone_place"]?.object?["check"] == "far")
    }

    /// A website that has not asked for the place does not get it.
    @Test func placeIsSentOnlyIfAskedFor() async throws {
        let scene = try await Scene(.file)
        let answer = try await scene.answer("approve", place: "0,10")
        #expect(answer.result["login"] == "success" && answer.result["phone_place"] == nil, "\(answer)")
        #expect(try claims(answer.result)["place"] == nil)
        let bad = try await scene.owner.phone("deny", "--place", "north")
        #expect(bad.status == 2 && bad.errors.contains("--place must be latitude and longitude"), "\(bad.errors)")
    }
}
