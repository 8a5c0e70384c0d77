import Testing
import TwoefayPhone

struct ActivationTests {
    private static let pin = "Y8jqGfueMSwWvPxgmFM0uwl05lG6yTFSKTpJib3w0OI"
    private static let right =
        "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token=6f0c&code=q3Lr&pin=\(pin)"

    @Test func unknownParametersAreIgnored() throws {
        let activation = try Activation(Self.right + "&later=%C3%A9")
        #expect(activation.websiteKey == nil && activation.code == "q3Lr" && activation.token == "6f0c")
    }

    @Test(arguments: [
        ("twoefay://enrol?", "https://enrol?"), ("website=shop&", ""), ("website=shop", "website=Shop"),
        ("website=shop", "website=.shop"), ("website=shop", "website="), ("token=6f0c", "token=6f%20c"),
        ("code=q3Lr", "code=q3Lr&code=q3Lr"), ("pin=Y8", "pin=Y"), ("code=q3Lr", "code"), ("code=q3Lr", "code=%q3"),
        ("code=q3Lr", "c%6fde=x&code=q3Lr"), ("code=q3Lr", "code=%ff"), ("&pin", "&k=AAEC&pin"),
        ("https%3A", "http%3A"),
        ("%3A8080", "%3A08080"), ("%3A8080", "%3A65536"), ("%3A8080", "%3A8080%2F"), ("login.", "user@login."),
        ("login.example", "login.Example"), ("code=q3Lr", "code=q3Lr&&"),
    ])
    func wrongURIIsRefused(part: String, wrong: String) {
        let uri = Self.right.replacing(part, with: wrong)
        #expect(uri != Self.right)
        #expect(throws: Activation.Malformed.self, "\(uri)") { try Activation(uri) }
    }

    /// A link to the web app may have `k` only at an address that is not the relay's.
    @Test func linksToTheWebAppAreRead() throws {
        let parameters = Self.right.dropFirst("twoefay://enrol?".count) + "&at=https%3A%2F%2Fphone.example.com"
        let key = "&k=" + Self.pin
        for (place, isRead, isReadWithKey) in [
            ("https://phone.example.com/phone/#", true, false), ("https://phone.example.com:8443/phone/#", true, false),
            ("https://login.example.com:8080/phone/#", true, false), ("https://app.example.org/phone/#", true, true),
            ("http://app.example.org/phone/#", false, false), ("https://app.example.org/#", false, false),
            ("https://app.example.org/x/phone/#", false, false), ("/phone/#", false, false),
        ] {
            #expect(((try? Activation(place + parameters)) != nil) == isRead, "\(place)")
            #expect(((try? Activation(place + parameters + key)) != nil) == isReadWithKey, "\(place)")
        }
    }

    @Test func originsHaveOneForm() {
        #expect(RelayOrigin("https://login.example.com")?.port == 443)
        #expect(RelayOrigin("https://[::1]:8443")?.host == "::1" && RelayOrigin("https://[::1]:8443")?.port == 8443)
        for text in [
            "https://", "https://a:", "https://a:0", "https://a/", "https://[::1", "https://a b", "https://a:1:2",
        ] {
            #expect(RelayOrigin(text) == nil, "\(text)")
        }
    }
}
