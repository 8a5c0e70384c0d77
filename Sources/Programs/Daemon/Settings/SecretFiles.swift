import Storage

extension Settings {
    /// The files whose content is secret, each with the key of its setting.
    var secretFiles: [(key: String, file: FileName)] {
        var files: [(key: String, file: FileName)] = [
            ("tls.key", tls.key), ("tls.websites_key", tls.websitesKey), ("master_key_file", masterKey),
        ]
        if !hasOutsideAuthority { files.append(("tls.phones_key", tls.phonesKey)) }
        files += passwordFiles
        let others: [(String, FileName?)] = [
            ("push.apns.key", push.key), ("push.apns.certificate_key", push.certificateKey),
            ("push.fcm.account", fcm.account), ("push.web.key", webPush.key), ("webhooks.key", webhooks.key),
            ("est.key", est.key),
        ]
        return files + others.compactMap { name, file in file.map { (name, $0) } }
    }

    /// The files with passwords and PINs.
    var passwordFiles: [(key: String, file: FileName)] {
        var files: [(String, FileName?)] = [
            ("mail.password_file", mail.passwordFile), ("est.password_file", est.passwordFile),
            ("pkcs11.pin_file", token.pinFile),
        ]
        files += texts.gateways.all.map { ("sms.gateways.\($0.name).password_file", $0.passwordFile) }
        for directory in directories.all {
            guard case .ldap(let server) = directory.kind else { continue }
            files.append(("directories.\(directory.name).password_file", server.passwordFile))
        }
        if case .mariadb(let server)? = try? storageURL(), let file = server.passwordFile {
            files.append(("storage (password_file)", FileName(file)))
        }
        return files.compactMap { name, file in file.map { (name, $0) } }
    }
}
