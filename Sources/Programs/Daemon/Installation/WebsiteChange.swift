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
        guard var given = old.ownPolicies else { throw Self.broken("they are not a JSON object") }
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
    /// The faults of stored values that are read as none.
    public let remarks: [String]

    public init(_ traits: Websites.Traits, settings: Settings) throws(Failure) {
        guard let own = traits.ownPolicies else { throw WebsiteChange.broken("they are not a JSON object") }
        var remarks: [String] = []
        do throws(Policy.Fault) {
            let policy = try settings.policy.changed(by: traits.policy) { remarks.append($0.message) }
            self.policy = policy
            rows = Policy.keys.map { ($0, policy.text(of: $0) ?? "", own[$0] != nil) }
        } catch {
            throw WebsiteChange.broken(error.message)
        }
        self.remarks = remarks
    }

    /// Returns the policies with the stored texts of those that cannot be read. A command that
    /// repairs them shows them as they were.
    public static func stored(
        _ traits: Websites.Traits, settings: Settings
    ) -> [(key: String, text: String, isOwn: Bool)] {
        let own = traits.ownPolicies ?? JSONObject()
        var policy = settings.policy
        return Policy.keys.map { key in
            guard let text = own[key]?.string else { return (key, policy.text(of: key) ?? "", false) }
            let isReadable = (try? policy.set(key, to: text)) != nil
            return (key, isReadable ? policy.text(of: key) ?? "" : text, true)
        }
    }
}

extension Websites.Traits {
    /// The policies that differ from those of the settings; nil if the column cannot be read.
    fileprivate var ownPolicies: JSONObject? { (try? JSONReader.read(Array(policy.utf8)))?.object }
}

extension WebsiteChange {
    /// The failure for stored policies that no relay of this version writes. Until they are set
    /// again, the relay refuses all calls of the website.
    fileprivate static func broken(_ fault: String) -> Failure {
        Failure(
            .failed, "the policies of the website in the store cannot be read: \(fault)",
            next: "Set that policy again: twoefay website edit NAME --POLICY VALUE")
    }
}
