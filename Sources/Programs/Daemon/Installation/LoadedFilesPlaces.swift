import Glibc

/// The checks of what a start needs besides files that it reads. Without them, `twoefayd --check` and a
/// reload would accept settings with which the next start fails.
extension LoadedFilesReader {
    /// Checks the groups and the directory of the control socket, and the place of the audit's heads.
    /// Only the relay's own account can tell.
    mutating func checkPlaces() {
        checkHeads()
        for (role, name) in ControlGroups.missing(settings.control) {
            problems.append("control.\(role.settingsName): there is no group \(name)")
        }
        guard let socket = settings.control.socket else { return }
        do throws(Failure) {
            try ControlListener.requireDirectory(of: settings.path(of: socket))
        } catch {
            problems.append(error.message)
        }
    }

    /// Checks that the relay can append to the file of the audit's heads, or make it. A file system that
    /// hangs is no fault of the settings: the relay waits for it no longer than here.
    private mutating func checkHeads() {
        guard case .file(let heads) = settings.auditHeads else { return }
        let path = settings.path(of: heads)
        let problem = BoundedWork.run("audit-heads", within: AuditHeadsExport.limit) { () -> String? in
            let place = Files.exists(path) ? path : Files.directory(of: path)
            guard access(place, W_OK) != 0 else { return nil }
            return "\(path): cannot be written: \(place): \(String(cString: strerror(errno)))"
        }
        if let problem = problem ?? nil { problems.append(problem) }
    }
}
