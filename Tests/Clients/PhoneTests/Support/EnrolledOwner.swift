import JSON
import TestSupport
import Testing

/// A website and its user's phone at a real relay, for the tests of `twoefay phone`.
extension RunningRelay {
    func enrolled() async throws -> (shop: CurlCaller, owner: Owner) {
        let shop = try await website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let owner = try Owner()
        #expect(try await owner.phone("enrol", uri).status == 0)
        return (shop, owner)
    }

    /// Runs a command of the operator's tool on this installation.
    func operate(_ arguments: String...) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", settings] + arguments)
    }
}
