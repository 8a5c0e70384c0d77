import Glibc

/// Files that systemd hands to this service only (`LoadCredential=`), which the settings name as
/// `credential:NAME`.
///
/// Purpose: a secret can stay in a file that only root can read. Its copy is in memory, and no other
/// service sees it.
///
/// Invariant: the directory of these files is protected by systemd and not by the mode of a file.
/// systemd grants access with an ACL, which looks like a right to read for the group. So that right
/// is accepted here, and nowhere else.
enum Credentials {
    static let scheme = "credential:"
    private static let variable = "CREDENTIALS_DIRECTORY"

    /// The directory without a slash at its end; nil if systemd has made none.
    private static var directory: String? {
        guard let value = getenv(variable) else { return nil }
        var directory = String(cString: value)
        while directory.hasSuffix("/") { directory.removeLast() }
        return directory.isEmpty ? nil : directory
    }

    /// Returns the path of a credential; nil for the name of another file. Without a directory the
    /// path names its variable, so that the error of the file does. It begins at the root, where only
    /// root can make such a directory.
    static func path(_ written: String) -> String? {
        guard written.hasPrefix(scheme) else { return nil }
        return "\(directory ?? "/$\(variable)")/\(written.dropFirst(scheme.count))"
    }

    /// Whether the path is that of a credential of this process.
    static func contains(_ path: String) -> Bool {
        guard let directory else { return false }
        return Files.directory(of: path) == directory
    }

    /// Throws if the name of a credential is not valid. Other file names pass.
    static func check(_ written: String) throws(SettingsFault) {
        guard written.hasPrefix(scheme) else { return }
        let name = written.dropFirst(scheme.count)
        guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
            throw SettingsFault("must be credential:NAME, with the name of a LoadCredential= of the unit")
        }
    }
}
