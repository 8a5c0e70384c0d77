/// A type whose values are ordered by their rank.
///
/// The operator is declared here, once for all such types, and not in their modules. The compiler
/// tracks operators by name alone: if a module declares `<`, a change of any public declaration in
/// it recompiles every file above it that compares anything.
public protocol Ranked: Comparable {
    associatedtype Rank: Comparable
    var rank: Rank { get }
}

extension Ranked {
    public static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }
}
