import Bytes
import Crypto
import Curl
import EventLoop
import TestSupport
import Testing

@testable import Daemon

@Suite struct WebhookSettingsTests {
    private func said(against webhooks: String) -> [String] { complaints(below: "webhooks:\n" + webhooks) }

    @Test func incompleteWebhookSettingsAreRefused() {
        #expect(said(against: "  allow: 10.0.0.0/8\n  ca: ca.pem\n  certificate: c.pem\n  key: c.key\n") == [])
        let together = "t.yaml:5:3: webhooks.certificate and webhooks.key must be set together"
        #expect(said(against: "  certificate: c.pem\n") == [together])
        #expect(said(against: "  key: c.key\n") == [together])
    }

    @Test(arguments: [
        ("allow: 10.0.0.1/8", "t.yaml:5:10: webhooks.allow must be ranges such as 10.20.0.0/16"),
        ("allow: intranet.example", "webhooks.allow must be ranges"),
        ("alow: 10.0.0.0/8", "alow is not a setting in webhooks; did you mean allow?"),
    ])
    func invalidWebhookSettingsAreReported(_ line: String, _ message: String) {
        let said = self.said(against: "  \(line)\n")
        #expect(said.count == 1 && said.allSatisfy { $0.contains(message) }, "\(said)")
    }

    // MARK: Files

    private let place: TemporaryDirectory
    private let certificates: TestCertificates

    init() throws {
        place = try TemporaryDirectory()
        certificates = try TestCertificates()
    }

    private func write(_ issued: IssuedCertificate, _ name: String) throws {
        try TextFile.write(issued.certificatePEM(), to: place("\(name).pem"))
        try TextFile.write(issued.keyPEM().reveal(), to: place("\(name).key"))
    }

    /// Reads the files of the webhook settings, and returns them with the problems.
    private func read(_ change: (inout Settings.WebhookSettings) -> Void) -> (LoadedFiles.WebhookFiles, [String]) {
        var settings = SettingsKeys.defaults
        settings.directory = place.path
        change(&settings.webhooks)
        var reading = LoadedFilesReader(settings: settings, now: certificates.now)
        let webhooks = reading.webhooks()
        return (webhooks, reading.problems)
    }

    @Test func webhookSettingsAreOptional() {
        let (webhooks, problems) = read { _ in }
        #expect(problems == [] && webhooks.allowed == [] && webhooks.authority == nil && webhooks.certificate == nil)
    }

    @Test func allWebhookSettingsAreRead() throws {
        let issued = try certificates.client()
        try write(issued, "relay")
        try TextFile.write(certificates.websites.certificatePEM(), to: place("inside.pem"))
        let ranges = try AddressRanges(settingsText: "10.0.0.0/8")
        let (webhooks, problems) = read {
            $0.allowed = ranges
            $0.authority = FileName("inside.pem")
            $0.certificate = FileName("relay.pem")
            $0.key = FileName("relay.key")
        }
        #expect(problems == [])
        #expect(webhooks.allowed == ranges.all)
        #expect(try webhooks.authority == certificates.websites.certificatePEM())
        #expect(try webhooks.certificate?.chain == issued.certificatePEM())
        #expect(try webhooks.certificate?.key.reveal() == issued.keyPEM().reveal())
    }

    @Test func mismatchedCertificateAndKeyAreRefused() throws {
        try write(try certificates.client(), "relay")
        try write(try certificates.client(), "other")
        let (webhooks, problems) = read {
            $0.certificate = FileName("relay.pem")
            $0.key = FileName("other.key")
        }
        #expect(webhooks.certificate == nil)
        #expect(problems.count == 1)
        #expect(problems.first?.hasPrefix(place("other.key") + ": cannot be used with " + place("relay.pem")) == true)
        #expect(problems.first?.contains("does not match the certificate") == true, "\(problems)")
    }

    @Test func faultyFileIsReportedOnce() throws {
        try write(try certificates.client(from: .seconds(-600), to: .seconds(-60)), "old")
        try TextFile.write("nothing\n", to: place("rubbish.pem"))
        for (certificate, message) in [
            ("old.pem", "old.pem: expired at"), ("none.pem", "none.pem: No such file"),
            ("rubbish.pem", "rubbish.pem: "),
        ] {
            let (_, problems) = read {
                $0.certificate = FileName(certificate)
                $0.key = FileName("old.key")
            }
            #expect(problems.count == 1 && problems.first?.contains(message) == true, "\(certificate): \(problems)")
        }
        let (_, problems) = read { $0.authority = FileName("rubbish.pem") }
        #expect(problems.count == 1 && problems.first?.contains("rubbish.pem: ") == true, "\(problems)")
    }
}

@Suite struct WebhookURLTests {
    private func fault(_ url: String, _ ranges: String...) throws -> String? {
        WebsiteFields.fault(inWebhookURL: url, allowed: try ranges.map { try #require(AddressRange($0)) })
    }

    @Test(arguments: [
        "https://shop.example.com/twoefay", "https://shop.example.com", "https://shop.example.com:8443/a?b=c",
        "https://198.41.0.4/", "https://[2a00:1450:4001::1]/",
    ])
    func publicHTTPSURLIsAccepted(url: String) throws {
        #expect(try fault(url) == nil)
        #expect(try fault(url, "10.0.0.0/8") == nil)
    }

    @Test(arguments: [
        "", "shop.example.com", "ftp://shop.example.com/", "https:///x", "https://u:p@shop.example.com/",
        "https://a b/",
        "https://shop.example.com/#x", "https://127.1/", "https://shop.example.com:0/",
        "https://shop.example.com/" + String(repeating: "x", count: 2048),
    ])
    func malformedWebhookURLIsRefused(url: String) throws {
        #expect(try fault(url, "0.0.0.0/0")?.hasPrefix("be a URL such as https://") == true)
    }

    @Test func plainHTTPIsAcceptedOnlyForAllowedRanges() throws {
        #expect(try fault("http://shop.example.com/")?.contains("be https: http is allowed only for") == true)
        #expect(try fault("http://10.1.2.3/")?.contains("'webhooks.allow'") == true)
        #expect(try fault("http://10.1.2.3/", "10.1.0.0/16") == nil)
        #expect(try fault("http://10.2.2.3/", "10.1.0.0/16")?.contains("be https") == true)
        // The addresses of a host name are checked only when a webhook is sent.
        #expect(try fault("http://shop.intranet/", "10.1.0.0/16") == nil)
    }

    @Test func privateAddressNeedsAnAllowedRange() throws {
        for host in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "[fd00::1]"] {
            let said = try #require(try fault("https://\(host)/x"))
            #expect(said.contains("'webhooks.allow' in the settings does not list it"), "\(said)")
            #expect(try fault("https://\(host)/x", "0.0.0.0/0", "::/0") == nil)
        }
    }
}
