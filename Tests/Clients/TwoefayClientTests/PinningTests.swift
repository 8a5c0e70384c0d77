import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

@Suite struct PinningTests {
    private let honest: Binding

    init() throws { honest = try Binding() }

    private func changed(_ change: (inout Binding) -> Void) -> Binding {
        var binding = honest
        change(&binding)
        return binding
    }

    @Test func validBindingPinsTheKey() throws {
        #expect(try honest.pinned() == PinnedPhone(device: "d1", key: honest.key.publicKey))
    }

    /// The relay must seal secrets to the key that the phone names.
    @Test func keyForSecretsIsPinnedAndNotReplaced() throws {
        let (own, other) = (try P256PrivateKey.generate().publicKey, try P256PrivateKey.generate().publicKey)
        let named = changed { $0.claims["agreement"] = .object(own.jwk) }
        func pinned(_ reported: JSONValue?) throws -> PinnedPhone {
            var device = named.device
            device["agreement"] = reported
            return try BindingCheck(origin: Login.origin, website: "shop")
                .pinned(device, token: Binding.token, k: named.k)
        }
        #expect(try pinned(.object(own.jwk)).agreement == own)
        for wrong in [.object(other.jwk), nil, .null] as [JSONValue?] {
            #expect(throws: BindingFault.key) { try pinned(wrong) }
        }
        // A phone that names none gets no secret at all.
        var device = honest.device
        device["agreement"] = .object(other.jwk)
        let check = BindingCheck(origin: Login.origin, website: "shop")
        #expect(throws: BindingFault.key) { try check.pinned(device, token: Binding.token, k: honest.k) }
    }

    @Test func keyOfTheRelayIsNotPinned() throws {
        let own = try P256PrivateKey.generate().publicKey
        // The relay reports its own key: first with the phone's true binding, then with a binding
        // under another k.
        #expect(throws: BindingFault.key) { try changed { $0.reported = own }.pinned() }
        let forged = changed {
            $0.reported = own
            $0.claims["jwk"] = .object(own.jwk)
            $0.usedK = Secret([UInt8](repeating: 7, count: 32))
        }
        #expect(throws: BindingFault.code) { try forged.pinned() }
    }

    @Test(arguments: [("device", BindingFault.incomplete), ("jwk", .key), ("binding", .incomplete)])
    func incompleteBindingIsRefused(name: String, fault: BindingFault) {
        var device = honest.device
        device[name] = nil
        let check = BindingCheck(origin: Login.origin, website: "shop")
        #expect(throws: fault) { try check.pinned(device, token: Binding.token, k: honest.k) }
    }

    @Test(arguments: [
        ("aud", "\(Login.origin)#bank", BindingFault.audience), ("aud", "https://relay.example.net#shop", .audience),
        ("id_token", "another", .token),
    ])
    func bindingOfAnotherUserOrWebsiteIsRefused(name: String, value: String, fault: BindingFault) {
        #expect(throws: fault) { try changed { $0.claims[name] = .string(value) }.pinned() }
    }

    @Test(arguments: [nil, "twoefay-enrol+jwt", "twoefay-decision+jwt", "JWT"]) func otherStatementIsNoBinding(
        type: String?
    ) {
        #expect(throws: BindingFault.type) { try changed { $0.type = type }.pinned() }
    }

    @Test func bindingWithAnotherAlgorithmIsRefused() throws {
        let payload = JSONWriter.write(honest.claims)
        let signed = try JWS.sign(header: ["typ": "twoefay-binding+jwt"], payload: payload, key: honest.key)
        let unsigned =
            "\(Base64URL.encode(Array(#"{"alg":"none","typ":"twoefay-binding+jwt"}"#.utf8)))."
            + "\(Base64URL.encode(payload))."
        let check = BindingCheck(origin: Login.origin, website: "shop")
        for binding in [signed, unsigned] {
            var device = honest.device
            device["binding"] = .string(binding)
            #expect(throws: BindingFault.malformed("the JWS has an algorithm that is not allowed here")) {
                try check.pinned(device, token: Binding.token, k: honest.k)
            }
        }
    }

    @Test(arguments: [
        ("v", BindingFault.claims), ("aud", .audience), ("id_token", .token), ("jwk", .claims),
    ])
    func bindingWithIncompleteClaimsIsRefused(name: String, fault: BindingFault) {
        for value: JSONValue? in [nil, .null, [:], 2] {
            #expect(throws: fault) { try changed { $0.claims[name] = value }.pinned() }
        }
    }

    /// Anyone can guess an empty k or a k of one byte.
    @Test(arguments: [0, 1, 31]) func bindingWithAShortSecretIsRefused(count: Int) {
        let short = Secret([UInt8](repeating: 0, count: count))
        #expect(throws: BindingFault.code) {
            try changed {
                $0.k = short
                $0.usedK = short
            }.pinned()
        }
    }
}
