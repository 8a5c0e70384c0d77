import Bytes
import Crypto
import HTTP
import TLS
import World

/// The checks of the files under `tls`, and the context of the server that is made from them.
///
/// A start, a reload and `--check` read the files here, so that none of them accepts what another
/// one refuses. Every fault that is found here would let some or all handshakes fail later.
/// `TLSFileTests.swift` tests it.
extension LoadedFilesReader {
    /// Checks that clients accept the certificate at the origin. Each of them compares the name.
    mutating func checkHost(of server: Certificate?) {
        let host = settings.origin.host
        guard knowsOrigin, let server, !server.isValid(forHost: host) else { return }
        let names = server.dnsNames.isEmpty ? "no host name" : server.dnsNames.joined(separator: ", ")
        problems.append(
            "\(settings.path(of: settings.tls.certificate)): is not for \(host), the host of the origin, but for "
                + "\(names). Every caller would refuse it; issue one with that name, or correct 'origin'")
    }

    /// Checks that the chain contains the pinned authority, and that callers accept the chain. Phones
    /// know only the thumbprint of the authority's key, so the handshake must show them its
    /// certificate. Websites have the certificate itself.
    mutating func checkChain(_ chain: [UInt8]?, endsWith authority: Certificate?) {
        guard let chain, let authority, let shown = try? Certificate.all(pem: chain), !shown.isEmpty else { return }
        let (file, path) = (settings.path(of: settings.tls.certificate), settings.path(of: settings.tls.authority))
        let copies = shown.filter { $0.spkiThumbprint == authority.spkiThumbprint }
        guard !copies.isEmpty else {
            problems.append("\(file): does not end with the certificate in \(path), whose key phones pin; append it")
            return
        }
        let faults = ([authority] + copies).compactMap { CertificatePath.serverFault(shown, authority: $0, at: now) }
        guard let fault = faults.first else { return }
        problems.append(
            "\(file): callers that trust \(path) would refuse it: \(fault). The first certificate must be for TLS "
                + "servers, and issued by that authority, or by the certificates that follow it")
    }

    /// Checks that no authority issues certificates of websites and of phones. Otherwise a phone
    /// could pass for a website.
    mutating func checkAuthorities(of websites: [UInt8]?, and phones: [UInt8]?) {
        guard let websites, let phones, let all = try? Certificate.all(pem: websites),
            let others = try? Certificate.all(pem: phones),
            !Set(all.map(\.spkiThumbprint)).isDisjoint(with: others.map(\.spkiThumbprint))
        else { return }
        let (first, second) = (settings.path(of: settings.tls.websites), settings.path(of: settings.tls.phones))
        problems.append("\(first): holds the authority of \(second). Websites and phones must not share one")
    }

    /// Checks the revocation lists: a list that is not valid now refuses every certificate of its
    /// issuer, and a list of another issuer has no effect.
    mutating func checkLists(_ pem: [UInt8]?, of websites: [UInt8]?, and phones: [UInt8]?) {
        guard let pem, let file = settings.tls.revoked else { return }
        let path = settings.path(of: file)
        let lists: [CertificateRevocationList]
        do throws(CryptoFailure) {
            lists = try CertificateRevocationList.all(pem: pem)
        } catch {
            problems.append("\(path): \(error.description)")
            return
        }
        if lists.isEmpty { problems.append("\(path): holds no revocation list (X509 CRL in PEM)") }
        let websites = websites.flatMap { try? Certificate.all(pem: $0) }
        let phones = phones.flatMap { try? Certificate.all(pem: $0) }
        for (index, list) in lists.enumerated() {
            let name = lists.count == 1 ? "" : "list \(index + 1) "
            if let end = list.nextUpdate, now >= end {
                problems.append(
                    "\(path): \(name)expired at \(end.rfc3339), so every certificate of its issuer is refused. "
                        + "Replace it with a new list")
            } else if now < list.thisUpdate {
                problems.append("\(path): \(name)is not valid before \(list.thisUpdate.rfc3339)")
            }
            guard let websites, let phones else { continue }
            if !(websites + phones).contains(where: { list.isSigned(by: $0) }) {
                problems.append(
                    "\(path): \(name)is not signed by an authority in "
                        + "\(settings.path(of: settings.tls.websites)) or \(settings.path(of: settings.tls.phones))")
            }
        }
        if let websites { checkNamesakes(lists, path, settings.tls.websites, websites) }
        if let phones { checkNamesakes(lists, path, settings.tls.phones, phones) }
    }

    /// Checks the authorities whose name is that of a list. OpenSSL looks for the list of an issuer
    /// by name, and then refuses all its certificates if another authority of that name signed it.
    private mutating func checkNamesakes(
        _ lists: [CertificateRevocationList], _ path: String, _ file: FileName, _ authorities: [Certificate]
    ) {
        for (index, authority) in authorities.enumerated() {
            guard lists.contains(where: { $0.issuer == authority.subject }),
                !lists.contains(where: { $0.isSigned(by: authority) })
            else { continue }
            problems.append(
                "\(path): holds a list of another authority with the name of certificate \(index + 1) in "
                    + "\(settings.path(of: file)), and none of that one itself, so all its certificates are refused. "
                    + "Add its list; an empty one is enough")
        }
    }

    /// Makes the context of the server. Faults that the checks above have not found are found here.
    mutating func serverContext(
        _ chain: [UInt8], _ key: Secret, websites: [UInt8], phones: [UInt8], revoked: [UInt8]?
    ) -> TLSServerContext? {
        do {
            return try TLSServerContext(
                certificateChainPEM: chain, privateKeyPEM: key, websitesCA: websites, phonesCA: phones,
                crl: revoked, application: settings.http1 == .on ? .http : .http2,
                sessions: ResumableSessions(time: SystemTime(), randomness: SystemRandomness()))
        } catch {
            // A fault of a file that was reported already has no second line.
            if problems.isEmpty { problems.append("tls: \(error)") }
            return nil
        }
    }
}
