import CLinux
import Glibc
import TestSupport
import Testing

@testable import Daemon

/// The check of the place of the audit's heads, by another account than the relay's.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct HeadsCheckTests {
    private static let stranger = RelayAccount(
        name: "stranger", user: 4711, groups: [4712], origin: "User= of twoefayd.service")

    /// An installation with heads in the directory `heads`, whose relay runs as another account. That
    /// account may search the directories above.
    private func site() throws -> ExaminedInstallation {
        var site = try ExaminedInstallation()
        site.facts.relayAccount = { _ in Self.stranger }
        _ = try Files.makeDirectory(site.path("heads"), mode: 0o755)
        try site.set("audit.heads", to: "heads/file.jsonl")
        for path in [site.directory.path, site.path("")] { #expect(chmod(path, 0o711) == 0) }
        return site
    }

    @Test func ownRightsOfThisAccountDoNotCount() async throws {
        let site = try site()
        let directory = site.path("heads")
        let refused = try await site.examined()
        #expect(refused.has("audit.heads", .failure, "cannot be written by stranger (User= of twoefayd.service)"))
        #expect(refused.has("audit.heads", .failure, "\(directory) has the owner"))
        #expect(refused.has("audit.heads", .failure, "and the mode 755"))
        chmod(directory, 0o757)
        #expect(try await site.examined().has("audit.heads", .ok, "can be written by stranger"))
        // The file that is there counts, and not the directory any more.
        try TextFile.write("", to: site.path("heads/file.jsonl"))
        chmod(site.path("heads/file.jsonl"), 0o600)
        #expect(try await site.examined().has("audit.heads", .failure, "file.jsonl has the owner"))
        chmod(site.path("heads/file.jsonl"), 0o602)
        #expect(try await site.examined().has("audit.heads", .ok))
        // A directory above that the account may not search.
        chmod(site.path(""), 0o700)
        #expect(try await site.examined().has("audit.heads", .failure, "and the mode 700"))
    }

    @Test func missingDirectoryIsAFailureForEachAccount() async throws {
        var site = try site()
        try site.set("audit.heads", to: "none/file.jsonl")
        #expect(try await site.examined().has("audit.heads", .failure, "No such file or directory"))
        site.facts.relayAccount = { RelayAccount.find($0, unit: nil) }
        #expect(try await site.examined().has("audit.heads", .failure, "No such file or directory"))
    }

    @Test func unknownAccountIsSaid() async throws {
        var site = try site()
        site.facts.relayAccount = { _ in nil }
        #expect(try await site.examined().has("audit.heads", .warning, "\(Account.current) runs this command"))
    }

    @Test func accountIsThatOfTheUnitOrOfTheKey() throws {
        let site = try site()
        let settings = try site.doctor().file.settings
        let key = try #require(RelayAccount.find(settings, unit: ["LoadState": "not-found", "User": "games"]))
        #expect(key.user == geteuid() && key.origin == "the owner of \(site.path("server.key"))")
        let unit = try #require(RelayAccount.find(settings, unit: ["LoadState": "loaded", "User": "games"]))
        #expect(unit.name == "games" && unit.origin == "User= of twoefayd.service")
        let games = try #require(getpwnam("games")).pointee
        #expect(unit.user == games.pw_uid && unit.groups.contains(games.pw_gid))
    }

    @Test func modesAreJudgedAsTheKernelDoes() {
        func rights(_ owner: uid_t, _ group: gid_t, _ mode: mode_t) -> mode_t {
            var state = stat()
            (state.st_uid, state.st_gid, state.st_mode) = (owner, group, mode)
            return Self.stranger.rights(of: state)
        }
        #expect(rights(4711, 4712, 0o421) == 4)
        // Only the first class that fits counts, also if a later one has more rights.
        #expect(rights(4711, 4712, 0o077) == 0)
        #expect(rights(1, 4712, 0o427) == 2)
        #expect(rights(1, 1, 0o421) == 1)
        let root = RelayAccount(name: "root", user: 0, groups: [0], origin: "")
        #expect(root.rights(of: stat()) == 7)
    }

    @Test func installationWithoutAFileHasNoFinding() async throws {
        let site = try ExaminedInstallation()
        #expect(try await site.examined().of("audit.heads") == [])
    }
}
