import Bytes
import FakePushServices
import Glibc
import JSON
import TestSupport
import Testing

/// The place of a login, as the user sees it, from a database that is read at the start and at reloads.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct PlaceTests {
    private static let ip = "203.0.113.77"

    private func database(_ city: String) -> [UInt8] {
        var file = MaxMindFile()
        file.add("203.0.113.0/24", .place(city: city, country: "Austria"))
        return file.bytes
    }

    private func start(_ apple: TestAPNs, _ directory: TemporaryDirectory) async throws -> Fixture {
        try TextFile.write(database("Graz"), to: directory("places.mmdb"))
        return try await Fixture.start(apple: apple) { try $0.set("geo.database", to: directory("places.mmdb")) }
    }

    private func alert(of login: Login, _ apple: TestAPNs) async throws -> JSONObject {
        let push = try await apple.service.next()
        #expect(push.challenge == login.challenge)
        return push.alert
    }

    @Test func pushNamesAddressAndPlace() async throws {
        let apple = try await TestAPNs.start()
        let directory = try TemporaryDirectory()
        let fixture = try await start(apple, directory)
        let (token, phone) = try await fixture.enrol("anna")
        var alert = try await alert(
            of: try await fixture.login(token, ["service": "the till", "ip": .string(Self.ip)]), apple)
        #expect(alert["loc-key"] == "TWOEFAY_LOGIN_SERVICE_PLACE_IP")
        #expect(alert["loc-args"] == ["the till", "Graz, Austria", .string(Self.ip)])
        // The context that the phone signs has the same place.
        let pending = try await phone.client.send("POST", "/pending")
        let context = try #require(pending.json["pending"]?.array?.first?.object?["context"]?.string)
        let bytes = try #require(Base64URL.decode(context))
        let shown = try #require(try JSONReader.read(bytes).object)
        #expect(shown["ip"]?.string == Self.ip)
        #expect(shown["place"]?.string == "Graz, Austria")

        // An address that the database lacks has no place, nor has a login without an address.
        alert = try await self.alert(of: try await fixture.login(token, ["ip": "198.51.100.7"]), apple)
        #expect(alert["loc-key"] == "TWOEFAY_LOGIN_IP")
        #expect(alert["loc-args"] == ["198.51.100.7"])
        alert = try await self.alert(of: try await fixture.login(token), apple)
        #expect(alert["loc-key"] == "TWOEFAY_LOGIN")
    }

    @Test func newGeoDatabaseIsLoadedCompletelyOrNotAtAll() async throws {
        let apple = try await TestAPNs.start()
        let directory = try TemporaryDirectory()
        let fixture = try await start(apple, directory)
        let (token, _) = try await fixture.enrol("anna")
        func place() async throws -> JSONValue? {
            let login = try await fixture.login(token, ["ip": .string(Self.ip)])
            return try await alert(of: login, apple)["loc-args"]?.array?.first
        }
        // Not before SIGHUP.
        try TextFile.write(database("Linz"), to: directory("places.mmdb"))
        #expect(try await place() == "Graz, Austria")
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        #expect(try await place() == "Linz, Austria")

        try TextFile.write(Array(database("Wels").dropLast(40)), to: directory("places.mmdb"))
        fixture.relay.signal(SIGHUP)
        let logged = try await fixture.relay.logged("event=daemon.reload ")
        #expect(logged.contains("level=error") && logged.contains("places.mmdb"), "\(logged)")
        #expect(try await place() == "Linz, Austria")

        // A valid database beside a certificate that is not.
        try TextFile.write(database("Wels"), to: directory("places.mmdb"))
        let certificate = try TextFile.read(fixture.relay.file("server.pem"))
        try TextFile.write("no certificate", to: fixture.relay.file("server.pem"))
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reload ", number: 2)
        #expect(try await place() == "Linz, Austria")
        try TextFile.write(certificate, to: fixture.relay.file("server.pem"))
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: 2)
        #expect(try await place() == "Wels, Austria")
    }
}
