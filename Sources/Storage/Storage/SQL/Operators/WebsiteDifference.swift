import JSON

/// The difference between two states of a website, for the audit.
enum WebsiteDifference {
    /// Returns JSON that names each changed value, with its value before and after. The keys of the
    /// policy are compared one by one.
    static func json(from old: Websites.Traits, to new: Websites.Traits) -> String {
        var changed = JSONObject()
        let pairs = [
            ("display_name", old.displayName, new.displayName), ("webhook_url", old.webhookURL, new.webhookURL),
        ]
        for (name, before, after) in pairs where before != after {
            changed.set(name, value(.text(before), .text(after)))
        }
        let (before, after) = (policy(old.policy), policy(new.policy))
        for name in Set(before.names + after.names).sorted() where before[name] != after[name] {
            changed.set("policy.\(name)", value(before[name] ?? .null, after[name] ?? .null))
        }
        return JSONWriter.text(.object(changed))
    }

    private static func value(_ before: JSONValue, _ after: JSONValue) -> JSONValue {
        .object(["before": before, "after": after])
    }

    private static func policy(_ text: String) -> JSONObject {
        (try? JSONReader.read(Array(text.utf8)).object) ?? JSONObject()
    }
}
