import Domain
import HTTP
import JSON
import TestSupport

extension Site {
    private var name: String {
        certificate?.uris.first.map { String($0.dropFirst("twoefay:website:".count)) } ?? ""
    }

    /// Sends /verify for a new phone with that code.
    func verify(_ phone: TestPhone, token: String, code: String, from remote: String = "192.0.2.1") async throws
        -> Response
    {
        let proof = try phone.proof(
            token: token, code: code, origin: RelayRig.origin, website: name, at: rig.relay.time.now())
        var request = rig.stranger.request(
            "POST", "/verify",
            [
                "id_token": .string(token), "dev_token": .string(phone.pushToken), "activation_code": .string(code),
                "proof": .string(proof),
            ])
        request.remote = remote
        return await rig.send(request)
    }

    func devices(_ username: String) async -> [JSONObject] {
        (await send("GET", "/user/\(username)")["devices"]?.array ?? []).compactMap(\.object)
    }
}
