import JSON
import Relay
import World

/// The difference between two states of a website, for the audit.
enum WebsiteDifference {
    /// Returns JSON that names each changed value, with its value before and after. The keys of the
    /// policy are compared one by one.
    static func json(from old: Websites.Traits, to new: Websites.Traits) -> String {
        var changed = ChangedValues()
        changed.note("display_name", .text(old.displayName), .text(new.displayName))
        changed.note("webhook_url", .text(old.webhookURL), .text(new.webhookURL))
        let (before, after) = (policy(old.policy), policy(new.policy))
        for name in Set(before.names + after.names).sorted() {
            changed.note("policy.\(name)", before[name] ?? .null, after[name] ?? .null)
        }
        return changed.text ?? "{}"
    }

    /// Returns the same for a new website, which had no values before, with its certificate.
    static func json(of website: Websites.New) -> String {
        var values = ChangedValues()
        values.note("display_name", .null, .string(website.displayName))
        values.note("webhook_url", .null, .text(website.endpoint?.url))
        let policies = policy(website.policy)
        for name in policies.names.sorted() { values.note("policy.\(name)", .null, policies[name] ?? .null) }
        values.note("serial", .null, .text(website.certificate?.serial))
        values.note("expires_at", .null, .text(website.certificate?.notAfter.rfc3339))
        return values.text ?? "{}"
    }

    private static func policy(_ text: String) -> JSONObject {
        (try? JSONReader.read(Array(text.utf8)).object) ?? JSONObject()
    }
}
