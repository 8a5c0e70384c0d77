import Bytes
import Commands
import Crypto
import Daemon
import EventLoop
import JSON
import Phone
import World

/// The commands for documents that a phone signs.
extension Tool {
    static let certifyPhone = Subcommand(
        command: Command(
            "phone certificate", "Gets a further certificate of the phone, for the documents of one tag.",
            operands: [.init("TAG", "A tag of the website's policy certificate-tags.")],
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop,
                .init(
                    "raw", .nothing, "The tag is marked raw. Only needed if an outside authority issues certificates."),
                .init("new-key", .nothing, "Make a new key; the certificate of the old one is revoked."),
            ],
            notes: """
                The same command renews the certificate. Each tag has a key of its own. The key is stored before the request is
                sent: if the answer is lost, run the command again, and the relay repeats it. If the mark raw of the tag was changed, give --new-key.
                """)
    ) { invocation throws(Failure) in
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        let (tag, newKey) = (invocation.operand(0), invocation.has("new-key"))
        let identity = PhoneOptions.identity(invocation)
        let prepared: Enrolment
        do throws(CryptoFailure) {
            prepared = try entry.enrolment.preparing(tag: tag, newKey: newKey)
        } catch {
            throw Failure(.failed, "no key can be made: \(error)", next: Failure.cryptoRemedy)
        }
        try keyring.update(entry, prepared)
        let changed = try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try Responder(prepared, by: identity, language: PhoneOptions.language, loop: loop)
                defer { phone.close() }
                return try await phone.certify(
                    tag: tag, isRaw: invocation.has("raw"), storing: keyring.storing(entry))
            } catch {
                throw Failure(error)
            }
        }
        try keyring.update(entry, changed)
        guard let key = changed.documentKey(tag) else {
            throw Failure(
                .failed, "the phone got no certificate for the tag \(tag)",
                next: "Run the command again: a certificate that was issued is given again. If it stays away, use "
                    + "--new-key.")
        }
        let until = key.certificate.notAfter.rfc3339
        return Report(
            "The key of the tag \(tag) has a certificate until \(until).",
            json: .object([
                "tag": .string(tag), "raw": .bool(key.isRaw), "serial": .string(key.certificate.serial),
                "thumbprint": .string(key.key.publicKey.thumbprint), "expires_at": .string(until),
            ]))
    }

    static let signDocument = Subcommand(
        command: Command(
            "phone sign", "Signs a document with the key of a tagged certificate.",
            operands: [.init("FILE", "The document.")],
            options: [
                Keyring.option, Keyring.choice,
                .init("tag", .one("TAG"), "The tag of the certificate (required)."),
                .init("label", .one("TEXT"), "The name of the document, which is shown and signed (required)."),
                .init("yes", .nothing, "Sign without a question. The command must then be used only by its person."),
            ],
            notes: """
                The command shows the label and the SHA-256 digest of the file, and asks before it signs. It needs no
                connection. The website checks the result at /verify-signature. Under a tag that is marked raw, the result is
                a bare signature over the digest, without the label.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay phone sign --help' for usage."
        guard let tag = invocation.value("tag"), let label = invocation.value("label") else {
            throw Failure(.usage, "--tag and --label must be given", next: help)
        }
        let entry = try Keyring(invocation).chosen(invocation)
        let phone = entry.enrolment
        guard let device = phone.device, let key = phone.documentKey(tag) else {
            throw Failure(
                .notFound, "the phone has no certificate with the tag \(ScreenText.visible(tag))",
                next: "To get one: twoefay phone certificate TAG")
        }
        let digest: [UInt8]
        do throws(Files.Problem) {
            digest = SHA256.hash(try Files.read(invocation.operand(0)))
        } catch {
            throw Failure(.notFound, error.text, next: "Give the document.")
        }
        try agree(to: label, Hex.encode(digest), of: phone, invocation)
        do throws(CryptoFailure) {
            let signature = try phone.sign(
                digest, label: label, with: key, device: device, at: SystemTime().now() + phone.clockOffset)
            return report(signature, tag: tag, device: device, digest: digest)
        } catch {
            throw Failure(.failed, "the document cannot be signed: \(error)", next: Failure.cryptoRemedy)
        }
    }

    private static func report(
        _ signature: DocumentSignature, tag: String, device: String, digest: [UInt8]
    ) -> Report {
        var object: JSONObject = [
            "device": .string(device), "tag": .string(tag), "hash": .string(Base64URL.encode(digest)),
        ]
        switch signature {
        case .statement(let statement):
            object.set("statement", .string(statement))
            return Report(statement, json: .object(object))
        case .raw(let der):
            object.set("signature", .string(Base64.encode(der)))
            return Report(Base64.encode(der), json: .object(object))
        }
    }

    /// Shows what is about to be signed, and asks the person.
    private static func agree(
        to label: String, _ digest: String, of phone: Enrolment, _ invocation: Invocation
    ) throws(Failure) {
        guard !invocation.has("yes") else { return }
        guard Keyboard.isTerminal, !invocation.has("json") else {
            throw Failure(
                .usage, "the command asks before it signs, and there is no terminal",
                next: "Run it at a terminal, or give --yes if the person has agreed.")
        }
        Program.say("Sign for \(phone.website)?\n  label: \(ScreenText.visible(label))\n  SHA-256: \(digest)\n")
        guard let line = Keyboard.ask("[y]es, [n]o: "), ["y", "yes"].contains(line.lowercased()) else {
            throw Failure(.failed, "nothing was signed", next: "Run the command again to sign the document.")
        }
    }
}
