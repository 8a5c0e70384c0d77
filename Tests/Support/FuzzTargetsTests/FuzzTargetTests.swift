import FuzzTargets
import TestSupport
import Testing

/// The properties that `Fuzz/run` tries to break, for the seeds and for every case that it has found.
struct FuzzTargetTests {
    private static let found =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Fuzz/Found"

    @Test func seedsKeepTheProperty() throws {
        for target in FuzzTargets.all {
            #expect(!target.seeds.isEmpty)
            for seed in target.seeds { try target.check(seed) }
        }
    }

    @Test func foundCasesKeepTheProperty() throws {
        let names = FuzzTargets.all.map(FuzzTargets.name)
        for name in TemporaryDirectory.names(in: Self.found) { #expect(names.contains(name)) }
        for target in FuzzTargets.all {
            let directory = "\(Self.found)/\(FuzzTargets.name(target))"
            for file in TemporaryDirectory.names(in: directory) {
                try target.check(TextFile.bytes("\(directory)/\(file)"))
            }
        }
    }
}
