import JSON

/// Compares the context that the phone showed with the values that the website sent.
///
/// Version 1 has exactly the members named here. The check refuses any other member, because the
/// phone may have shown the person a text that this website never sent.
struct ShownContext {
    /// The size limit of a context, in bytes.
    static let maxBytes = 65_536

    /// Members that the relay adds. The website cannot know their values, so the check ignores
    /// them.
    private static let ofRelay = ["place", "device", "created_at", "expires_at"]

    private let members: JSONObject

    init(_ bytes: [UInt8]) throws(ReceiptFault) {
        let object: JSONObject?
        do throws(JSONError) {
            object = try JSONReader.read(bytes).object
        } catch {
            throw .context(error.message)
        }
        guard let object else { throw .context("it is not an object") }
        members = object
    }

    /// Throws unless every value that was sent is present unchanged and no other value is present.
    func agree(with asked: LoginRecord, website: String, displayName: String?) throws(ReceiptFault) {
        guard members["v"]?.integer == 1 else { throw .field("v") }
        let texts: [(name: String, sent: String?)] = [
            ("website", website), ("username", asked.username), ("service", asked.service), ("action", asked.action),
            ("ip", asked.ip), ("user_agent", asked.userAgent), ("request", asked.request),
        ]
        for (name, sent) in texts {
            guard try text(name).isExactly(sent) else { throw .field(name) }
        }
        let shownName = try text("display_name")
        if let displayName, !shownName.isExactly(displayName) { throw .field("display_name") }
        guard try details() == asked.details.map(Exact.init) else { throw .field("details") }
        let digits = asked.number?.utf8.count ?? 0
        guard members["number_digits"]?.integer == Int64(digits) else { throw .field("number_digits") }

        let known = texts.map(\.name) + ["v", "display_name", "details", "number_digits"] + Self.ofRelay
        if let foreign = members.names.first(where: { name in !known.contains { $0.isExactly(name) } }) {
            throw .field(foreign)
        }
    }

    private func text(_ name: String) throws(ReceiptFault) -> String? {
        guard let value = members[name] else { return nil }
        guard let text = value.string else { throw .field(name) }
        return text
    }

    /// A detail whose equality compares bytes.
    private struct Exact: Equatable {
        let detail: LoginRecord.Detail

        static func == (a: Exact, b: Exact) -> Bool {
            a.detail.label.isExactly(b.detail.label) && a.detail.value.isExactly(b.detail.value)
        }
    }

    private func details() throws(ReceiptFault) -> [Exact] {
        guard let value = members["details"] else { return [] }
        guard let list = value.array else { throw .field("details") }
        var details: [Exact] = []
        for entry in list {
            guard let pair = entry.object, pair.count == 2, let label = pair["label"]?.string,
                let value = pair["value"]?.string
            else { throw .field("details") }
            details.append(Exact(detail: LoginRecord.Detail(label: label, value: value)))
        }
        return details
    }
}
