import Domain

extension Settings {
    /// Refuses the policies of a website if no phone could meet them under these settings, if they
    /// have no effect, or if the phones of a directory's group could not meet those of the group.
    ///
    /// - Parameter name: the name of the website.
    public func requireAttestable(_ website: WebsitePolicy, of name: String) throws(Failure) {
        try requireMeetable(website.policy)
        try requireGroups(of: name, under: website.policy)
    }

    fileprivate func requireMeetable(_ policy: Policy) throws(Failure) {
        do throws(SettingsFault) {
            try requireAttestable(policy)
        } catch {
            throw Failure(
                .usage, error.message,
                next: "docs/phones/attestation.md says what each policy needs. Nothing was changed.")
        }
        do throws(SettingsFault) {
            try policy.requireSignedAnswers()
        } catch {
            throw Failure(
                .usage, error.message,
                next: "A policy that is not given is taken from the settings. Nothing was changed.")
        }
    }
}

extension NewWebsite {
    /// Refuses the website if no phone could meet its policies under these settings, or if they have no
    /// effect.
    public func requireAttestable(_ settings: Settings) throws(Failure) {
        // The policies were checked one by one; `changed` cannot fail here.
        guard let own = try? settings.policy.changed(by: policy) else { return }
        try settings.requireMeetable(own)
        try settings.requireGroups(of: name, under: own)
    }
}
