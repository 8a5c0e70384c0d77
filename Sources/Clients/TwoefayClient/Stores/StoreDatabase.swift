/// A value of a statement.
public enum StoreValue: Sendable, Equatable {
    /// A text.
    case text(String)
    /// A whole number.
    case integer(Int64)
}

/// Runs one statement with its values in a transaction, and returns the rows that it found, if any. All
/// columns that `SQLStore` reads are texts.
public typealias StoreExecute =
    @concurrent @Sendable (_ statement: String, _ values: [StoreValue]) async throws -> [[String]]

/// The website's own database, with any driver. `SQLStore` needs no more than this.
///
///     struct Database: StoreDatabase {  // for a driver with a pool of connections
///         let pool: Pool
///
///         func transaction<Value: Sendable>(
///             _ work: @escaping @concurrent @Sendable (_ execute: @escaping StoreExecute) async throws -> Value
///         ) async throws -> Value {
///             try await pool.transaction { connection in
///                 try await work { statement, values in try await connection.rows(statement, values) }
///             }
///         }
///     }
public protocol StoreDatabase: Sendable {
    /// Runs `work` in one transaction on one connection. It commits what `work` did; if `work` or the
    /// commit fails, it rolls back and throws.
    ///
    /// The isolation must be at least read committed, as every database has it by default.
    ///
    /// `@concurrent` stands there so that the type is the same for a website that does not build with
    /// the feature `NonisolatedNonsendingByDefault`, as this package does.
    func transaction<Value: Sendable>(
        _ work: @escaping @concurrent @Sendable (_ execute: @escaping StoreExecute) async throws -> Value
    ) async throws -> Value
}
