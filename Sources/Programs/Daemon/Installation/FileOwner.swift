import Glibc

/// A user of this machine who gets files, with the user's main group.
struct FileOwner: Sendable {
    private let name: String
    private let user: uid_t
    private let group: gid_t

    init(_ name: String) throws(Failure) {
        guard let entry = getpwnam(name) else {
            throw Failure(.usage, "--owner: there is no user \(name)", next: "Give the user that runs twoefayd.")
        }
        self.name = name
        user = entry.pointee.pw_uid
        group = entry.pointee.pw_gid
    }

    /// Makes this user the owner of a file or directory. A link is not followed: in a directory that
    /// the user can change, it may lead to a file of root.
    func take(_ path: String) throws(Failure) {
        guard lchown(path, user, group) == 0 else {
            throw Failure(
                .failed, "\(Files.Problem(path).text), when \(name) should become its owner",
                next: "Only root can give files away. The files created so far are removed.")
        }
    }
}
