import Domain

extension Policy {
    /// The key of a demand that only a signed answer can meet, while the policy has other answers;
    /// nil if there is none.
    var demandOfSignedAnswers: String? {
        guard answers != .signed else { return nil }
        if pin != .none { return "pin" }
        return maxUVAge == nil ? nil : "max-uv-age"
    }

    /// Refuses demands that no phone could meet, because its answers are not signed.
    func requireSignedAnswers() throws(SettingsFault) {
        guard let key = demandOfSignedAnswers, let value = text(of: key) else { return }
        throw SettingsFault(
            "\(key): \(value) needs answers: signed, because with answers: \(answers.rawValue) no phone signs its answer: "
                + "use answers: signed, or \(key): none")
    }
}
