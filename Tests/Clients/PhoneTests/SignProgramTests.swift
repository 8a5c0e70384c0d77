import Bytes
import Crypto
import HTTP
import JSON
import TestSupport
import Testing
import World

/// `twoefay phone certificate` and `twoefay phone sign` with a real relay, its website and its
/// operator.
@Suite(.timeLimit(.minutes(15))) struct SignProgramTests {
    private func json(_ ended: Child.Ended) throws -> JSONObject {
        try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
    }

    private func verify(_ shop: CurlCaller, _ body: JSONObject) async throws -> CurlCaller.Answer {
        try await shop.curl("POST", "/verify-signature", json: JSONWriter.text(.object(body)))
    }

    @Test(arguments: [StoreKind.file, .mariadb], [[], ["--dpop"]])
    func documentIsSignedAndVerified(kind: StoreKind, identity: [String]) async throws {
        let relay = try await RunningRelay.start(kind)
        let (shop, owner) = try await relay.enrolled()
        let none = try await owner.phone("certificate", "sign")
        #expect(none.status == 1 && none.errors.contains("certificate-tags"), "\(none.errors)")
        let edited = try await relay.operate("website", "edit", "shop", "--certificate-tags", "sign, legacy:raw")
        #expect(edited.status == 0, "\(edited.errors)")
        var serials: [String] = []
        for tag in ["sign", "legacy"] {
            let issued = try await owner.begin(["certificate", tag, "--json"] + identity + ["--keys", owner.keys])
                .ended()
            serials.append(try #require(try json(issued)["serial"]?.string))
        }

        let path = owner.directory("contract.txt")
        try TextFile.write(Array("The contract.\n".utf8), to: path)
        let asked = try await owner.phone("sign", path, "--tag", "sign", "--label", "Contract 7")
        #expect(asked.status == 2 && asked.errors.contains("asks before it signs"), "\(asked.errors)")
        let signed = try json(
            try await owner.phone("sign", path, "--tag", "sign", "--label", "Contract 7", "--yes", "--json"))
        #expect(signed["hash"] == .string(Base64URL.encode(SHA256.hash(Array("The contract.\n".utf8)))))
        let verdict = try await verify(shop, signed)
        #expect(verdict["valid"] == true && verdict["label"] == "Contract 7", "\(verdict)")
        #expect(verdict["username"] == "alice" && verdict["certificate"]?.object?["serial"] == .string(serials[0]))
        var other = signed
        other["hash"] = .string(Base64URL.encode(SHA256.hash(Array("Another contract.\n".utf8))))
        #expect(try await verify(shop, other)["fault"] == "digest")

        let bare = try json(
            try await owner.phone("sign", path, "--tag", "legacy", "--label", "Contract 7", "--yes", "--json"))
        #expect(bare["statement"] == nil)
        #expect(try await verify(shop, bare)["valid"] == true, "\(bare)")

        let device = try #require(signed["device"]?.string)
        let shown = try await relay.operate("device", "show", device)
        for part in serials + ["sign", "legacy", "bare hashes"] {
            #expect(shown.output.contains(part), "\(shown.output)")
        }
        let listed = try json(try await relay.operate("device", "show", device, "--json"))
        #expect(listed["tagged_certificates"]?.array?.count == 2)
        let user = try await shop.curl("GET", "/user/alice")
        #expect(user["devices"]?.array?.first?.object?["certificates"]?.array?.count == 2, "\(user)")

        // The signatures end with the phone.
        #expect(try await owner.phone("unbind").status == 0)
        #expect(try await verify(shop, signed)["code"] == "not_found")
    }
}
