import Bytes
import HTTP
import Phone
import Testing

struct ActivationURITests {
    private static let pin = Base64URL.encode([UInt8](0..<32))
    static let right =
        "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token=ab12&code=f91r8F9C&pin=\(pin)"

    @Test func activationURIOfTheRelayIsRead() throws {
        let activation = try ActivationURI(Self.right)
        #expect(activation.relay.text == "https://login.example.com:8080")
        #expect(activation.website == "shop")
        #expect(activation.token == "ab12")
        #expect(activation.code == "f91r8F9C")
        #expect(activation.pin == [UInt8](0..<32))
        #expect(activation.websiteKey == nil)
    }

    @Test func websiteKeyIsReadAndUnknownParametersAreIgnored() throws {
        let key = Base64URL.encode([UInt8](repeating: 7, count: 32))
        let activation = try ActivationURI("\(Self.right)&k=\(key)&later=%C3%A4")
        #expect(activation.websiteKey?.reveal() == [UInt8](repeating: 7, count: 32))
    }

    /// A link to the web app has the same parameters. `k` may be in one to another address alone.
    @Test func linksToTheWebAppAreRead() throws {
        let parameters = Self.right.dropFirst("twoefay://enrol?".count) + "&at=https%3A%2F%2Fphone.example.com"
        let k = "&k=" + Base64URL.encode([UInt8](repeating: 7, count: 32))
        for (place, isRead, isReadWithKey) in [
            ("https://phone.example.com/phone/#", true, false), ("https://PHONE.example.com:8443/phone/#", true, false),
            ("https://login.example.com:9090/phone/#", true, false), ("https://app.example.org/phone/#", true, true),
            ("http://app.example.org/phone/#", false, false), ("https://app.example.org/phone/?", false, false),
            ("https://app.example.org/#", false, false), ("https://app.example.org/a/phone/#", false, false),
            ("https://a@app.example.org/phone/#", false, false), ("/phone/#", false, false),
        ] {
            #expect(((try? ActivationURI(place + parameters)) != nil) == isRead, "\(place)")
            #expect(((try? ActivationURI(place + parameters + k)) != nil) == isReadWithKey, "\(place)")
        }
        #expect(try ActivationURI("https://app.example.org/phone/#" + parameters).token == "ab12")
    }

    /// A part of a valid URI, its replacement and the expected message. The demo's phone has to
    /// refuse the same URIs.
    static let faults: [(part: String, replacement: String, message: String)] = [
        ("twoefay://enrol?", "https://enrol?", "does not begin with"),
        ("twoefay://enrol?", "twoefay://enrol/?", "does not begin with"),
        ("relay=https%3A%2F%2F", "relay=http%3A%2F%2F", "relay must be https"),
        ("%3A8080", "%3A8080%2Fpath", "relay must be https"),
        ("%3A8080", "%3A8080%", "is not a percent-encoded NAME=VALUE"),
        ("%3A8080", "%3G8080", "is not a percent-encoded NAME=VALUE"),
        ("website=shop", "website=%FF", "is not a percent-encoded NAME=VALUE"),
        ("website=shop", "website=", "website is missing"),
        ("website=shop", "website=..%2Fshop", "website must be a name"),
        ("website=shop", "website=Shop", "website must be a name"),
        ("&token=ab12", "", "token is missing"),
        ("&token=ab12", "&token", "is not a percent-encoded NAME=VALUE"),
        ("&code=f91r8F9C", "", "code is missing"),
        ("&pin=", "&pin=A", "pin is not"),
        ("&pin=", "&nip=", "pin is missing"),
        ("&token=ab12", "&token=ab12&token=ab13", "token occurs twice"),
        ("&token=ab12", "&token=ab12&k=AAAA", "k is not"),
    ]

    @Test(arguments: faults)
    func ambiguousActivationURIIsRefused(part: String, replacement: String, message: String) throws {
        let parts = Self.right.split(separator: part, maxSplits: 1, omittingEmptySubsequences: false)
        try #require(parts.count == 2)
        let problem = #expect(throws: ActivationURI.Malformed.self) {
            try ActivationURI(String(parts[0]) + replacement + parts[1])
        }
        #expect(problem?.description.contains(message) == true, "\(problem?.description ?? "accepted")")
    }
}
