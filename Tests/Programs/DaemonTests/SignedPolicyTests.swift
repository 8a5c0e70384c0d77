import Domain
import Storage
import Testing

@testable import Daemon

/// The policies that need signed answers.
@Suite struct SignedPolicyTests {
    private static let needed = "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"

    private func read(_ text: String) throws -> Settings {
        try SettingsReader.read(Array((Self.needed + text).utf8), file: "/etc/twoefay.yaml")
    }

    private func problems(_ text: String) -> String {
        do {
            _ = try read(text)
            return ""
        } catch {
            return "\(error)"
        }
    }

    /// A phone that needs a PIN could never approve, because its answers are not signed.
    @Test(arguments: ["certificate", "website"], ["pin: required", "pin: optional", "max_uv_age: 60"])
    func demandNeedsSignedAnswers(answers: String, policy: String) throws {
        let problem = problems("policies:\n  answers: \(answers)\n  \(policy)\n")
        let key = policy.replacing("_", with: "-")
        #expect(problem.contains("\(key) needs answers: signed"), "\(problem)")
        // The line of the demand.
        #expect(problem.contains("/etc/twoefay.yaml:6:3"), "\(problem)")
        _ = try read("policies:\n  answers: signed\n  \(policy)\n")
        // The default of the settings counts for a website, too.
        let settings = try read("policies:\n  \(policy)\n")
        let website = try NewWebsite(name: "shop", policies: [("answers", answers)])
        #expect(throws: Failure.self) { try website.requireAttestable(settings) }
        let name = String(key.prefix { $0 != ":" })
        let without = try NewWebsite(name: "shop", policies: [("answers", answers), (name, "none")])
        try without.requireAttestable(settings)
    }

    @Test func otherAnswersNeedNoSignature() throws {
        for answers in ["certificate", "website"] {
            _ = try read("policies:\n  answers: \(answers)\n  pin: none\n  max_uv_age: none\n")
        }
    }

    /// A group cannot set `answers`, so its demands must fit those of its website.
    @Test func demandOfAGroupNeedsSignedAnswersOfItsWebsite() throws {
        let settings = try read(
            """
            directories:
              - {name: staff, website: shop, kind: csv, file: a.csv, groups: [{group: board, policy: {pin: required}}]}
            """)
        func traits(_ policy: String) -> Websites.Traits {
            Websites.Traits(displayName: "Shop", policy: policy, webhook: nil)
        }
        for (name, policy, isRefused) in [
            ("shop", #"{"answers":"certificate"}"#, true), ("shop", #"{"answers":"signed"}"#, false),
            ("club", #"{"answers":"certificate"}"#, false),
        ] {
            let website = try WebsitePolicy(traits(policy), settings: settings)
            let failure = (try? settings.requireAttestable(website, of: name)) == nil
            #expect(failure == isRefused, "\(name) \(policy)")
        }
        let new = try NewWebsite(name: "shop", policies: [("answers", "certificate")])
        #expect(throws: Failure.self) { try new.requireAttestable(settings) }
    }
}
