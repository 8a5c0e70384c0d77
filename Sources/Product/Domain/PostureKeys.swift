import Attestation

/// Parses the values of the policies about attestations and postures.
extension Policy {
    static func version(_ key: String, _ text: String) throws(Fault) -> DottedVersion? {
        guard text != "none" else { return nil }
        guard text.utf8.count <= 64, let version = DottedVersion(text) else {
            throw Fault(message: "\(key) must be none or a version of one to four numbers, such as 18.0 or 42")
        }
        return version
    }

    /// Parses a month such as 202607.
    static func month(_ key: String, _ text: String) throws(Fault) -> Int64? {
        guard text != "none" else { return nil }
        guard text.utf8.count == 6, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let month = Int64(text),
            (1...12).contains(month % 100)
        else { throw Fault(message: "\(key) must be none or a month as six digits, such as 202607") }
        return month
    }

    static func toggle(_ key: String, _ text: String) throws(Fault) -> Bool {
        let toggle: Toggle = try word(key, text)
        return toggle == .on
    }

    /// Whether approvals depend on the attestation or the posture of the phone.
    public var asksPosture: Bool { attestation.strictest != .none || !posture.isEmpty }
}
