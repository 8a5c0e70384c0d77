import Domain
import JSON
import Storage

/// The changes to a website that `website edit` describes.
public struct WebsiteChange: Sendable {
    /// The value that resets a policy to the one of the settings.
    public static let fromSettings = "default"
    /// The value that removes the webhook URL.
    public static let none = "none"

    private let displayName: String?
    private let webhookURL: String?
    private let policies: [(name: String, text: String)]

    /// Checks the changes.
    ///
    /// - Parameters:
    ///   - allowed: the ranges of `webhooks.allow`.
    ///   - policies: texts by the policies' names, as on the command line.
    public init(
        displayName: String?, webhook: String?, allowed: AddressRanges? = nil,
        policies: [(name: String, text: String)]
    ) throws(Failure) {
        let fields = WebsiteFields(command: "website edit")
        guard displayName != nil || webhook != nil || !policies.isEmpty else {
            throw Failure(
                .usage, "there is nothing to change",
                next: "Give a policy, --display-name or --webhook. 'twoefay website show NAME' shows the values.")
        }
        if let displayName { try fields.check(displayName: displayName) }
        if let webhook, webhook != Self.none { try fields.check(webhook: webhook, allowed: allowed) }
        for (name, text) in policies where text != Self.fromSettings { try fields.check(policy: name, text) }
        self.displayName = displayName
        self.webhookURL = webhook
        self.policies = policies
    }

    /// Returns the website with the changes. Policies that only a newer relay knows stay unchanged.
    public func applied(to old: Websites.Traits) throws(Failure) -> Websites.Traits {
        guard var given = old.ownPolicies else { throw Self.broken }
        for (name, text) in policies { given[name] = text == Self.fromSettings ? nil : .string(text) }
        return Websites.Traits(
            displayName: displayName ?? old.displayName, policy: JSONWriter.text(.object(given)),
            webhook: webhookURL == Self.none ? nil : webhookURL ?? old.webhookURL)
    }
}

/// The policies that apply to a website, each with its origin: the website or the settings.
public struct WebsitePolicy: Sendable {
    /// The policies in order. `isOwn` is true if the website's own policy applies, and false if the
    /// settings' one does.
    public let rows: [(key: String, text: String, isOwn: Bool)]
    public let policy: Policy

    public init(_ traits: Websites.Traits, settings: Settings) throws(Failure) {
        guard let own = traits.ownPolicies else { throw WebsiteChange.broken }
        do throws(Policy.Fault) {
            let policy = try settings.policy.changed(by: traits.policy)
            self.policy = policy
            rows = Policy.keys.map { ($0, policy.text(of: $0) ?? "", own[$0] != nil) }
        } catch {
            throw WebsiteChange.broken
        }
    }
}

extension Websites.Traits {
    /// The policies that differ from those of the settings; nil if the column cannot be read.
    fileprivate var ownPolicies: JSONObject? { (try? JSONReader.read(Array(policy.utf8)))?.object }
}

extension WebsiteChange {
    fileprivate static let broken = Failure(
        .failed, "the policies of the website in the store cannot be read",
        next: "Correct the column policy of its row in the table website; no relay writes such a value.")
}
