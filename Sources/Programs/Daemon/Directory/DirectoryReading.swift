import Directory
import DirectorySources
import World

extension LoadedFilesReader {
    /// Checks the files of the directories, as `twoefayd --check` does for all others. Each sync
    /// reads them anew.
    mutating func checkDirectories() {
        for directory in settings.directories.all {
            switch directory.kind {
            case .ldap(let ldap):
                if let file = ldap.authority { _ = certificate(file, bytes(file)) }
                if let file = ldap.passwordFile { _ = line(of: file) }
            case .csv(let file):
                // Another program writes the file. A relay without it serves everybody; only a sync needs it.
                // Its file system may hang, and must not stop a start or a reload.
                let path = settings.path(of: file)
                let problem = BoundedWork.run("csv", within: .seconds(2)) { Files.obstacle(path)?.text ?? "" }
                let text = problem ?? "\(path) does not answer within 2 s"
                if !text.isEmpty {
                    warnings.append("\(text); no sync of the directory \(directory.name) can read it")
                }
            }
        }
    }
}

extension Settings {
    /// Returns the source that the settings of a directory describe. Its password is read now, so
    /// that a new one needs no reload.
    ///
    /// - Parameter user: the username of a single user to read; nil reads all.
    private func source(
        of directory: DirectorySettings, user: String? = nil, time: any TimeSource
    ) throws(Failure) -> any DirectorySource {
        switch directory.kind {
        case .csv(let file):
            let path = path(of: file)
            return CSVSource(
                mapping: directory.mapping,
                groups: directory.groups.map { .init(name: $0.group ?? "", policy: $0.policy) }, user: user,
                limit: directory.mostEntries
            ) { () throws(DirectoryFailure) in
                do throws(Files.Problem) {
                    return try Files.read(path, atMost: CSVSource.mostBytes)
                } catch {
                    throw DirectoryFailure(error.text, next: "Check 'file' in the settings of this directory.")
                }
            }
        case .ldap(let ldap):
            let server = LDAPServer(
                urls: ldap.urls, authority: ldap.authority.map { path(of: $0) }, isPlain: ldap.isPlain,
                account: try account(of: ldap), timeout: .seconds(ldap.timeout))
            let groups = directory.groups.map { group in
                LDAPSource.Group(
                    filter: group.filter ?? LDAPSource.Group.members(of: group.group ?? ""), policy: group.policy)
            }
            return LDAPSource(
                server, base: ldap.base, filter: ldap.filter, mapping: directory.mapping, groups: groups, user: user,
                pageSize: ldap.pageSize, limits: LDAPLimits(entries: directory.mostEntries), time: time)
        }
    }

    /// Reads a source to its end.
    public func content(
        of directory: DirectorySettings, user: String? = nil, time: any TimeSource
    ) throws(Failure) -> DirectoryContent {
        let source = try source(of: directory, user: user, time: time)
        do throws(DirectoryFailure) {
            return try source.read()
        } catch {
            throw Failure(.failed, "the directory \(directory.name): \(error.message)", next: error.next)
        }
    }

    private func account(of ldap: DirectorySettings.LDAPSettings) throws(Failure) -> LDAPServer.Account? {
        guard let dn = ldap.account, let file = ldap.passwordFile else { return nil }
        do throws(Files.Problem) {
            return LDAPServer.Account(dn: dn, password: try Files.readLine(path(of: file)))
        } catch {
            throw Failure(
                .failed, error.text,
                next: "'password_file' of the directory must hold the password in one line, readable by its owner only."
            )
        }
    }

    /// Returns the settings of the directory with this name.
    public func directory(named name: String) throws(Failure) -> DirectorySettings {
        if let directory = directories.all.first(where: { $0.name == name }) { return directory }
        let names = directories.all.map(\.name)
        throw Failure(
            .notFound, "the settings have no directory \(name)",
            next: names.isEmpty
                ? "Add it under 'directories'; docs/operators/directory.md explains how."
                : "The directories are \(names.joined(separator: ", ")).")
    }
}
