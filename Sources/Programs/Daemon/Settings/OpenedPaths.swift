import Hardening
import Storage

/// A file or directory that the daemon opens while it runs.
struct OpenedPath: Sendable, Equatable {
    let path: String
    let access: LandlockRules.Access
}

extension Settings {
    /// All paths that the settings name and that the daemon opens: at the start, at a reload, or in
    /// between. The Landlock rules are made from them.
    var openedPaths: [OpenedPath] {
        var own = readByRelay
        // It is written, see below.
        own.auditHeads = nil
        var paths = [OpenedPath(path: directory.isEmpty ? "." : directory, access: .reading)]
        paths += Self.files(in: own).map { OpenedPath(path: path(of: $0), access: .reading) }
        if case .file(let heads) = auditHeads { paths.append(OpenedPath(path: path(of: heads), access: .changing)) }
        // The relay removes its socket at the end.
        if let socket = control.socket { paths.append(OpenedPath(path: path(of: socket), access: .changing)) }
        switch try? storageURL() {
        case .sqlite(let path): paths.append(OpenedPath(path: path, access: .changing))
        case .mariadb(let server):
            let files = [server.passwordFile, server.authority].compactMap { $0 }
            paths += files.map { OpenedPath(path: $0, access: .reading) }
        case .memory, nil: break
        }
        return paths
    }

    /// These settings without the files that only other programs read.
    var readByRelay: Settings {
        var own = self
        // Otherwise only the operator's tool signs with this key, or `twoefay-keys`.
        if tls.websitesRenewal == .off || keys != nil { own.tls.websitesKey = own.tls.websites }
        if keys != nil {
            // Only `twoefay-keys` reads these.
            own.token = TokenService()
            own.masterKey = own.tls.phones
            own.tls.phonesKey = own.tls.phones
        }
        if hasOutsideAuthority { own.tls.phonesKey = own.tls.phones }
        return own
    }

    /// Returns every file name in a value and in the values inside it. Reflection finds them, so a
    /// new setting cannot be forgotten here.
    static func files(in value: Any) -> [FileName] {
        if let file = value as? FileName { return [file] }
        return Mirror(reflecting: value).children.flatMap { files(in: $0.value) }
    }

    /// Returns the paths that `twoefay-keys` may open. The socket's directory is writable, because
    /// the process removes its socket at the end.
    func keyServiceRules(socket: String) -> LandlockRules {
        var rules = LandlockRules.system
        let ofWebsites = tls.websitesRenewal == .on ? [tls.websites, tls.websitesKey] : []
        for file in [masterKey, tls.phones] + (hasOutsideAuthority ? [] : [tls.phonesKey]) + ofWebsites {
            rules.allow(path(of: file), .reading)
        }
        rules.allow(socket, .changing)
        return rules
    }

    /// The paths that the daemon may open under these settings.
    var landlockRules: LandlockRules {
        var rules = LandlockRules.system
        for opened in openedPaths { rules.allow(opened.path, opened.access) }
        return rules
    }
}
