import JSON
import Relay

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

    private static func policy(_ text: String) -> JSONObject {
        (try? JSONReader.read(Array(text.utf8)).object) ?? JSONObject()
    }
}
