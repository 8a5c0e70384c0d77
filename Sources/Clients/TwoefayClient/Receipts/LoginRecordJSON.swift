import JSON

/// Stores a login record as JSON, for a session or database that holds texts.
extension LoginRecord {
    /// The record as a JSON object. Members without a value are left out.
    public var json: JSONObject {
        var json: JSONObject = [
            "challenge": .string(challenge), "username": .string(username), "request": .string(request),
            "asked_at": .integer(askedAt),
        ]
        for (name, value) in [
            ("number", number), ("service", service), ("action", action), ("ip", ip), ("user_agent", userAgent),
        ] {
            json.set(name, value.map { .string($0) })
        }
        if !details.isEmpty {
            json["details"] = .array(details.map { ["label": .string($0.label), "value": .string($0.value)] })
        }
        return json
    }

    /// Reads a record that `json` wrote; nil if a required member is missing or a detail is
    /// malformed.
    public init?(_ json: JSONObject) {
        guard let challenge = json["challenge"]?.string, let username = json["username"]?.string,
            let request = json["request"]?.string, let askedAt = json["asked_at"]?.integer
        else { return nil }
        let pairs = json["details"]?.array ?? []
        let details = pairs.compactMap { pair -> Detail? in
            guard let label = pair.object?["label"]?.string, let value = pair.object?["value"]?.string else {
                return nil
            }
            return Detail(label: label, value: value)
        }
        guard details.count == pairs.count else { return nil }
        self.init(
            challenge: challenge, username: username, request: request, number: json["number"]?.string,
            service: json["service"]?.string, action: json["action"]?.string, details: details,
            ip: json["ip"]?.string, userAgent: json["user_agent"]?.string, askedAt: askedAt)
    }
}
