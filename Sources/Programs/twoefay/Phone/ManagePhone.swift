import Bytes
import Commands
import Crypto
import Daemon
import EventLoop
import HTTP
import JSON
import Phone
import TLS
import World

/// The commands that manage phones.
extension Tool {
    static let listPhones = Subcommand(
        command: Command("phone list", "Lists the phones on this machine.", options: [Keyring.option])
    ) { invocation throws(Failure) in
        let keyring = try Keyring(invocation)
        let entries = try keyring.all()
        let table = Table(
            ["DEVICE", "WEBSITE", "RELAY", "NAME", "CERTIFICATE UNTIL"],
            entries.map { entry in
                let phone = entry.enrolment
                return [
                    phone.device ?? "not bound yet", phone.website, phone.relay.text, phone.name ?? "",
                    phone.certificate?.notAfter.rfc3339 ?? "",
                ]
            })
        let none = "There is no phone in \(keyring.directory). To bind one: twoefay phone enrol URI"
        return Report(
            entries.isEmpty ? none : table.text,
            json: .object(["phones": .array(entries.map { .object($0.json) })]))
    }

    static let showPhone = Subcommand(
        command: Command(
            "phone show", "Shows a phone: its device id, its website and its public key.",
            options: [Keyring.option, Keyring.choice])
    ) { invocation throws(Failure) in
        let entry = try Keyring(invocation).chosen(invocation)
        let object = entry.json
        let lines = object.members.map { member in
            "\(member.name): \(member.value.string ?? JSONWriter.text(member.value))"
        }
        return Report(lines.joined(separator: "\n"), json: .object(object))
    }

    static let changePhone = Subcommand(
        command: Command(
            "phone change", "Changes the name or the device token of a phone, or renews its certificate.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop,
                .init("name", .one("TEXT"), "The new name of the phone."),
                .init("dev-token", .one("TOKEN"), "The new device token of a push service."),
                .init("no-dev-token", .nothing, "Remove the device token: the phone gets no pushes, and polls."),
                .init("renew", .nothing, "Get a new certificate now, not only before the old one expires."),
            ])
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay phone change --help' for usage."
        let (name, renews, isSilent) = (
            invocation.value("name"), invocation.has("renew"), invocation.has("no-dev-token")
        )
        guard !isSilent || invocation.value("dev-token") == nil else {
            throw Failure(.usage, "--dev-token and --no-dev-token exclude each other", next: help)
        }
        let token = isSilent ? "" : invocation.value("dev-token")
        guard name != nil || token != nil || renews else {
            throw Failure(.usage, "there is nothing to change", next: help)
        }
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        let identity = PhoneOptions.identity(invocation)
        let changed = try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try Responder(entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
                defer { phone.close() }
                return try await phone.change(
                    pushToken: token, name: name, renews: renews || phone.isToRenew, storing: keyring.storing(entry))
            } catch {
                throw Failure(error)
            }
        }
        let saved = try keyring.update(entry, changed)
        let end = changed.certificate.map { "Its certificate expires at \($0.notAfter.rfc3339)." }
        let left = changed.openRequests.tags.map {
            "\nThe certificate of the tag \($0) is not renewed yet: twoefay phone certificate \($0)"
        }
        return Report(
            "The phone is changed. \(end ?? "It has no certificate yet.")\(left.joined())", json: .object(saved.json))
    }

    static let unbindPhone = Subcommand(
        command: Command(
            "phone unbind", "Unbinds a phone at the relay, and deletes its key.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop,
                .init(
                    "forget", .nothing, "Delete the key without a request to the relay; the phone may stay bound."),
            ],
            notes: """
                The phone signs that it leaves, and deletes its key only when the relay has signed that the phone is unbound. It
                works also for a phone that its website, an operator or its revocation code has unbound.
                """)
    ) { invocation throws(Failure) in
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        let identity = PhoneOptions.identity(invocation)
        var farewell: SignedFarewell?
        if !invocation.has("forget") {
            guard entry.enrolment.device != nil else {
                throw Failure(
                    .failed, "the phone is not bound yet",
                    next: "To delete its key: twoefay phone unbind --forget")
            }
            farewell = try onLoop { loop throws(Failure) in
                do throws(CallFailure) {
                    let phone = try Responder(
                        entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
                    defer { phone.close() }
                    return try await phone.leave()
                } catch {
                    throw Failure(error)
                }
            }
        }
        keyring.remove(entry)
        return Report(
            farewell.map {
                "The phone is unbound at the relay (\($0.by)), as the relay has signed, and its key is deleted."
            } ?? "The key is deleted. No request was sent to the relay.",
            json: .object([
                "device": entry.enrolment.device.map { .string($0) } ?? .null,
                "website": .string(entry.enrolment.website),
                "asked_relay": .bool(farewell != nil), "unbound_by": .text(farewell?.by),
                "farewell": .text(farewell?.statement),
            ]))
    }

    static let revokePhone = Subcommand(
        command: Command(
            "phone revoke", "Unbinds a lost phone with its revocation code, from anywhere.",
            operands: [.init("CODE", "The revocation code; - reads it from standard input.")],
            options: [
                .init("relay", .one("ORIGIN"), "The relay, https://HOST:PORT, as 'phone enrol' printed it (required)."),
                .init(
                    "pin", .one("PIN"), "Trust only a relay whose authority has this key, as in the activation."),
                .init("ca", .one("FILE"), "Trust this authority in addition to the system's."),
            ])
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay phone revoke --help' for usage."
        let code = invocation.operand(0) == "-" ? readLine() ?? "" : invocation.operand(0)
        guard let origin = invocation.value("relay"), let relay = WebAddress(origin) else {
            throw Failure(.usage, "--relay must be the relay's https://HOST:PORT", next: help)
        }
        let roots = try roots(invocation, help)
        try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                try await Revocation.revoke(
                    code, at: relay, believing: roots, language: PhoneOptions.language, loop: loop)
            } catch {
                throw Failure(error, unauthenticated: "Check that the code is complete.")
            }
        }
        return Report("The phone is unbound.", json: .object(["revoked": true]))
    }

    private static func roots(_ invocation: Invocation, _ help: String) throws(Failure) -> TLSClientContext.Roots {
        if let text = invocation.value("pin") {
            guard let pin = Base64URL.decode(text), pin.count == 32 else {
                throw Failure(.usage, "--pin must be a SHA-256 in base64url", next: help)
            }
            return .pinned(pin)
        }
        guard let path = invocation.value("ca") else { return .system }
        do throws(Files.Problem) {
            return .systemAnd(try Files.read(path))
        } catch {
            throw Failure(.notFound, error.text, next: "Give the ca.pem of the relay's operator.")
        }
    }
}

extension Keyring.Entry {
    /// The enrolment without the private key and other secrets.
    fileprivate var json: JSONObject {
        let phone = enrolment
        return [
            "device": phone.device.map { .string($0) } ?? .null, "state": phone.device == nil ? "begun" : "bound",
            "website": .string(phone.website), "relay": .string(phone.relay.text),
            "name": phone.name.map { .string($0) } ?? .null, "platform": .string(phone.platform.rawValue),
            "environment": .string(phone.environment.rawValue),
            "dev_token": phone.pushToken.map { .string($0) } ?? .null,
            "pin": .string(Base64URL.encode(phone.pin)), "thumbprint": .string(phone.thumbprint),
            "jwk": .object(phone.key.publicKey.jwk),
            "agreement": phone.agreementKey.map { .object($0.publicKey.jwk) } ?? .null,
            "certificate_expires_at": phone.certificate.map { .string($0.notAfter.rfc3339) } ?? .null,
            "clock_offset": .integer(phone.clockOffset.wholeMilliseconds),
            "waiting_certificates": .array(phone.openRequests.tags.map { .string($0) }),
            "made_at": .string(phone.madeAt.rfc3339), "path": .string(path),
        ]
    }
}
