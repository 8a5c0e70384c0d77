import Domain
import Relay
import Storage

/// The check of the policies of directory groups against those of their website. A group cannot set
/// `answers`, so a demand of its own that only a signed answer meets may not fit the website.
extension Settings {
    /// Refuses the policies of a website if the users of a group could not meet those of their group
    /// beside them.
    ///
    /// - Parameter policy: the policies of the website, with those of the settings.
    public func requireMeetableGroups(of website: String, under policy: Policy) throws(SettingsFault) {
        for directory in directories.all where directory.website == website {
            for group in directory.groups {
                guard let own = try? policy.changed(by: group.policy) else { continue }
                do throws(SettingsFault) {
                    try own.requireSignedAnswers()
                } catch {
                    throw SettingsFault(
                        "the group \(group.group ?? group.filter ?? "") of the directory \(directory.name): "
                            + error.message)
                }
            }
        }
    }

    /// The warnings of `twoefayd --check` and `twoefay doctor` about directories whose website does not
    /// exist, or has policies that do not fit those of a group. A relay starts with such settings, and
    /// the syncs of the directory fail.
    func directoryWarnings(_ store: Store) throws(StoreFailure) -> [String] {
        var warnings: [String] = []
        for name in Set(directories.all.map(\.website)).sorted() {
            guard let website = try store.runBlocking(Websites.named(name)) else {
                let own = directories.all.filter { $0.website == name }.map(\.name).joined(separator: ", ")
                warnings.append("directories: \(own): the store has no website \(name), so syncs fail")
                continue
            }
            guard let own = try? policy.changed(by: website.traits.policy) else { continue }
            do throws(SettingsFault) {
                try requireMeetableGroups(of: name, under: own)
            } catch {
                warnings.append(error.message)
            }
        }
        return warnings
    }

    /// Returns why a sync of the website's users fails after it has disabled the leavers; nil if the
    /// policies of the groups fit.
    func misfit(of website: String, under policy: Policy) -> Failure? {
        do throws(Failure) {
            try requireGroups(of: website, under: policy)
            return nil
        } catch {
            return Failure(
                error.code, error.message,
                next: error.next.replacing(
                    "Nothing was changed.", with: "Only users whose entries are gone were disabled."))
        }
    }

    /// Does the same as `requireMeetableGroups`, for commands.
    func requireGroups(of website: String, under policy: Policy) throws(Failure) {
        do throws(SettingsFault) {
            try requireMeetableGroups(of: website, under: policy)
        } catch {
            throw Failure(
                .conflict, error.message,
                next: "Nothing was changed. Change 'groups' of the directory in the settings, or: twoefay website edit "
                    + "\(website) --answers signed")
        }
    }
}
